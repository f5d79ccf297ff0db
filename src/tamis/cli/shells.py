"""How bash and fish hand the words of a line to tamis, and take what completes the last one.

Those of click are replaced, because bash splits words at colons, and click's script for fish splits answers at commas.
"""

from __future__ import annotations

import os

from click.shell_completion import BashComplete, FishComplete, add_completion_class, split_arg_string

_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' line="${COMP_LINE:0:COMP_POINT}" last="${COMP_WORDS[COMP_CWORD]}" completion type value kept=
    # Bash splits words at these, too, and replaces only what follows the last one.
    if [[ $last == [:=] ]]; then last=; fi
    local word="${line##*[[:space:]]}"
    if [[ $word == *[:=]"$last" ]]; then kept="${word%%"$last"}"; fi
    if [[ $word == --*=* ]]; then kept="${kept#*=}"; fi  # tamis answers without the name of the option
    for completion in $(env COMP_WORDS="$line" %(complete_var)s=bash_complete "$1"); do
        IFS=',' read -r type value <<< "$completion"
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("${value#"$kept"}") ;;
        esac
    done
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


@add_completion_class
class Bash(BashComplete):
    """Words are split by tamis, as the shell would split the line without colons."""

    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the last one, and the last one, which is empty after a space."""
        line = os.environ["COMP_WORDS"]
        _, *words = split_arg_string(line)
        incomplete = "" if not words or line[-1:].isspace() else words.pop()
        return words, incomplete


@add_completion_class
class Fish(FishComplete):
    """Answers are split at the first comma alone."""

    source_template = FishComplete.source_template.replace("string split ", "string split --max 1 ")
