from tamis._of_zfp import BLOCK_SIDE as BLOCK_SIDE
from tamis._of_zfp import MAX_RANK as MAX_RANK
from tamis._of_zfp import Accuracy as Accuracy
from tamis._of_zfp import Config as Config
from tamis._of_zfp import Expert as Expert
from tamis._of_zfp import Header as Header
from tamis._of_zfp import Mode as Mode
from tamis._of_zfp import Precision as Precision
from tamis._of_zfp import Rate as Rate
from tamis._of_zfp import Reversible as Reversible
from tamis._of_zfp import as_mode as as_mode
from tamis._of_zfp import check_encodable as check_encodable
from tamis._of_zfp import config as config
from tamis._of_zfp import decode as decode
from tamis._of_zfp import decode_with_header as decode_with_header
from tamis._of_zfp import encode as encode
from tamis._of_zfp import encode_with_header as encode_with_header
from tamis._of_zfp import is_lossless as is_lossless
from tamis._of_zfp import max_extent as max_extent
from tamis._of_zfp import mode as mode
from tamis._of_zfp import mode_of as mode_of
from tamis._of_zfp import prove as prove

__all__ = ["BLOCK_SIDE", "MAX_RANK", "Accuracy", "Config", "Expert", "Header", "Mode", "Precision", "Rate", "Reversible", "as_mode", "check_encodable", "config", "decode", "decode_with_header", "encode", "encode_with_header", "is_lossless", "max_extent", "mode", "mode_of", "prove"]
