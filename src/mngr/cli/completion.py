"""`mngr completion`: a script that lets a shell complete mngr's words."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from mngr.cli.parser import Parser

SETTINGS_OPTIONAL = True

DESCRIPTION = """\
Print a completion script for a shell. It completes commands, options, their values, names of
agents, templates and settings: on TAB it asks mngr, so it need not be printed anew when mngr
or its plugins change.

Add one line to the shell's start-up file, or save the script where the shell looks for such:

    bash   source <(mngr completion bash)     # in ~/.bashrc
    zsh    source <(mngr completion zsh)      # in ~/.zshrc, after compinit
    fish   mngr completion fish | source      # in ~/.config/fish/config.fish"""

# bash breaks words at `=` and `:` too, hands them over in pieces, and replaces only the last
# piece: so join them to ask, and cut the part before the last piece off the answers.
BASH = """\
_mngr() {
    local word joined='' value _ answer status
    local -a words=()
    for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
        case $joined,$word in
            *[=:],*) words[${#words[@]}-1]+=$word ;;
            ?*,[=:]*) words[${#words[@]}-1]+=$word ;;
            *) words+=("$word") ;;
        esac
        joined=$word
    done
    answer=$(command mngr __complete -- "${words[@]}" 2>/dev/null)
    status=$?
    COMPREPLY=()
    if [ $status -eq 9 ]; then
        compopt -o default 2>/dev/null
        return
    fi
    local last=${words[${#words[@]}-1]}
    local head=${last%"${last##*[=:]}"}
    while IFS=$'\\t' read -r value _; do
        [ -n "$value" ] && COMPREPLY+=("${value#"$head"}")
    done <<< "$answer"
    case ${COMPREPLY[0]} in *=) compopt -o nospace 2>/dev/null ;; esac
}
complete -F _mngr mngr
"""

ZSH = """\
#compdef mngr
_mngr() {
    local answer line value
    local -a plain open
    answer=$(command mngr __complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)
    if [[ $? -eq 9 ]]; then
        _files
        return
    fi
    for line in "${(@f)answer}"; do
        value=${line%%$'\\t'*}
        [[ -n $value ]] || continue
        line=${value//:/\\\\:}:${${line#"$value"}#$'\\t'}
        if [[ $value == *= ]]; then open+=("$line"); else plain+=("$line"); fi
    done
    _describe -t values mngr plain -- open -S ''
}
if [[ $funcstack[1] == _mngr ]]; then _mngr "$@"; else compdef _mngr mngr; fi
"""

FISH = """\
function __mngr_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    command mngr __complete -- $words[2..-1] "$current" 2>/dev/null
    if test $status -eq 9
        __fish_complete_path "$current"
    end
end
complete -c mngr -f -a '(__mngr_complete)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def configure(parser: Parser) -> None:
    parser.description = DESCRIPTION
    parser.add_argument("shell", metavar="SHELL", choices=tuple(SCRIPTS), help="bash, zsh or fish")
    parser.examples = [("complete in this bash", "source <(mngr completion bash)")]


def run(args: Namespace) -> int:
    sys.stdout.write(SCRIPTS[args.shell])
    return 0
