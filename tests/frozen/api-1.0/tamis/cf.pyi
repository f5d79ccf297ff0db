from tamis._of_cf import DATA as DATA
from tamis._of_cf import FILL_ATTRIBUTES as FILL_ATTRIBUTES
from tamis._of_cf import KINDS as KINDS
from tamis._of_cf import Packing as Packing
from tamis._of_cf import Role as Role
from tamis._of_cf import ValidRange as ValidRange
from tamis._of_cf import Variable as Variable
from tamis._of_cf import missing_values as missing_values
from tamis._of_cf import packing_of as packing_of
from tamis._of_cf import roles_of as roles_of
from tamis._of_cf import valid_range as valid_range

__all__ = ["DATA", "FILL_ATTRIBUTES", "KINDS", "Packing", "Role", "ValidRange", "Variable", "missing_values", "packing_of", "roles_of", "valid_range"]
