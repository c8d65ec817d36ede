"""The scripts of stranger.py for the agent's host, in POSIX sh.

`locate` finds the git directory, `enter` makes the door, `theirs` runs git through it.
"""

from __future__ import annotations

from mngr.model.quoting import quote

REFUSED = 93
NO_REPOSITORY = 94

# The environment for git, without tokens and ssh-agent, in case git runs a program of the agent.
# The user's git configuration is read as usual. $bare is empty if the whole environment is passed.
CLEAN = r"""
bare=-i
clean() {
  env $bare HOME="${HOME:-/}" PATH="$PATH" LANG="${LANG:-C.UTF-8}" ${LC_ALL+"LC_ALL=$LC_ALL"} \
    ${USER+"USER=$USER"} ${LOGNAME+"LOGNAME=$LOGNAME"} ${TZ+"TZ=$TZ"} \
    ${TMPDIR+"TMPDIR=$TMPDIR"} ${XDG_CONFIG_HOME+"XDG_CONFIG_HOME=$XDG_CONFIG_HOME"} \
    ${GIT_CONFIG_GLOBAL+"GIT_CONFIG_GLOBAL=$GIT_CONFIG_GLOBAL"} \
    ${GIT_CONFIG_SYSTEM+"GIT_CONFIG_SYSTEM=$GIT_CONFIG_SYSTEM"} \
    ${GIT_CONFIG_NOSYSTEM+"GIT_CONFIG_NOSYSTEM=$GIT_CONFIG_NOSYSTEM"} "$@"
}
"""

# `.git` is read as data and must name the repository that mngr created: otherwise mngr could move
# the HEAD of another repository.
LOCATE = r"""
refuse() { printf '%s\n' "$1" >&2; exit 93; }
absent() { printf 'fatal: not a git repository: %s\n' "$work" >&2; exit 94; }
replaced() { refuse "$1 was replaced: it is not the repository that mngr created"; }
gitdir_of() {
  gitdir=$1/.git
  [ ! -d "$gitdir" ] || return 0
  [ -f "$gitdir" ] || return 1
  IFS= read -r gitdir < "$1/.git" || :
  case $gitdir in "gitdir: "*) gitdir=${gitdir#gitdir: } ;; *) return 1 ;; esac
  case $gitdir in /*) ;; *) gitdir=$1/$gitdir ;; esac
  gitdir=${gitdir%/}
  [ -d "$gitdir" ]
}
common_of() {
  common=$gitdir
  [ -f "$gitdir/commondir" ] || return 0
  IFS= read -r common < "$gitdir/commondir" || :
  case $common in /*) ;; *) common=$gitdir/$common ;; esac
}
physical() { (CDPATH= cd -P -- "$1" 2>/dev/null && pwd); }
# $1 is a linked worktree of the repository $2, which knows it as its own.
linked() {
  [ -f "$1/.git" ] || replaced "$1/.git"
  gitdir_of "$2" || { gitdir=$2 && [ -d "$2/objects" ]; } || absent
  common_of
  owner=$common
  gitdir_of "$1" || absent
  [ "${gitdir%/*}" -ef "$owner/worktrees" ] && [ -f "$gitdir/gitdir" ] || replaced "$1/.git"
  IFS= read -r back < "$gitdir/gitdir" || :
  case $back in /*) ;; *) back=$gitdir/$back ;; esac
  [ "$back" -ef "$1/.git" ] || replaced "$1/.git"
  common=$owner
}
# $1 is in the work tree $2; its git directory is in $1, or among the modules of $2.
nested() {
  outer=$(physical "$2") && inner=$(physical "$1") || absent
  case $inner in "$outer"/*) ;; *) replaced "$1" ;; esac
  gitdir_of "$2" && modules=$(physical "$gitdir")/modules || absent
  gitdir_of "$1" && gitdir=$(physical "$gitdir") || absent
  case $gitdir in "$outer"/* | "$modules"/*) ;; *) replaced "$1/.git" ;; esac
  common=$gitdir
}
around() {
  until [ -e "$top/.git" ]; do
    case $top in /*) top=${top%/*} ;; *) absent ;; esac
  done
  gitdir_of "$top" || absent
  common_of
}
locate() {
  work=$1 top=$1
  case $2 in
    bare) gitdir=$1 common=$1 top=; [ -d "$1/refs" ] || absent; return ;;
    none) around; return ;;
  esac
  [ ! -h "$1" ] && [ ! -h "$1/.git" ] || replaced "$1/.git"
  [ -e "$1/.git" ] || absent
  case $2 in
    git-worktree) linked "$1" "$3" ;;
    nested) nested "$1" "$3" ;;
    *)
      [ -d "$1/.git" ] || replaced "$1/.git"; gitdir=$1/.git common=$1/.git
      for each in refs logs objects; do
        [ ! -h "$gitdir/$each" ] || replaced "$gitdir/$each"
      done ;;
  esac
}
"""

# Only settings that affect how files are compared are copied.
WANTED = (
    r"^(core\.(autocrlf|eol|safecrlf|filemode|ignorecase|symlinks|precomposeunicode|protecthfs"
    r"|protectntfs|quotepath|trustctime|checkstat|sparsecheckout|sparsecheckoutcone"
    r"|excludesfile|attributesfile)|index\.sparse"
    r"|extensions\.(objectformat|refstorage|worktreeconfig)|filter\..*)$"
)
QUIET = r"""[core]
hooksPath = /dev/null
fsmonitor = false
pager = cat
alternateRefsCommand = true
[log]
showSignature = false
[submodule]
recurse = false
[advice]
addEmbeddedRepo = false
[gc]
auto = 0
[maintenance]
auto = false
[receive]
autogc = false
shallowUpdate = true
"""

# Most repositories have only the settings that `git init` and `git clone` write; these are read
# without a process.
CONSTANTS = f"wanted={quote(WANTED)} quiet={quote(QUIET)}\n"
SETTINGS = r"""
ordinary() {
  for each; do [ ! -e "$each" ] || [ -f "$each" ] || refuse "$each is not a regular file"; done
}
plain() {
  while read -r each || [ -n "$each" ]; do
    case $each in
      '' | '[core]' | '[user]' | '[remote "'*'"]' | '[branch "'*'"]') ;;
      'repositoryformatversion = 0' | 'filemode = true' | 'bare = '* | 'logallrefupdates = '*) ;;
      'url = '* | 'fetch = '* | 'remote = '* | 'merge = '* | 'name = '* | 'email = '*) ;;
      *) return 1 ;;
    esac
  done < "$1"
}
data() { env -i PATH="$PATH" HOME="$door" GIT_CONFIG_NOSYSTEM=1 git config --file "$@"; }
take_over() {
  [ -f "$1" ] && ! plain "$1" || return 0
  filters=
  data "$1" --get-regexp "$wanted" > "$door/found" || :
  while read -r key value; do
    case $key in
      filter.*) filters=some; continue ;;
      core.excludesfile | core.attributesfile)
        case $value in '~/'*) value=$HOME/${value#??} ;; esac
        case $value in *[\"\\]*) continue ;; /*) ;; *) continue ;; esac
        [ -f "$value" ] || continue ;;
      *) case $value in '' | *[!A-Za-z0-9]*) continue ;; esac ;;
    esac
    case $key in
      extensions.worktreeconfig) case $value in true | yes | on | 1) private=yes ;; esac ;;
      extensions.*) version=1; printf '[extensions]\n%s = %s\n' "${key#*.}" "$value" ;;
      *) printf '[%s]\n%s = "%s"\n' "${key%.*}" "${key#*.}" "$value" ;;
    esac
  done < "$door/found" >> "$door/config"
  [ -z "$filters" ] || take_filters "$1"
}
# A filter that only this repository defines must not run, and must not be skipped silently, because
# unfiltered files would be stored. So the command fails if a file requires it.
take_filters() {
  theirs config --name-only --get-regexp '^filter\.' > "$door/known" || :
  data "$1" --name-only --get-regexp '^filter\.' | sed 's/^filter\.//; s/\.[^.]*$//' |
    sort -u > "$door/found"
  while IFS= read -r name; do
    ! grep -qF "filter.$name." "$door/known" || continue
    case $name in
      *[!A-Za-z0-9._-]*) refuse "a filter has a strange name: $name" ;;
      lfs) ! usual_lfs "$1" || continue ;;
    esac
    foreign="$foreign '$name'"
    printf '[filter "%s"]\nclean = false\nsmudge = false\nrequired = true\n' "$name" \
      >> "$door/config"
  done < "$door/found"
}
# The values that `git lfs install --local` writes are copied; with any other value it is foreign.
usual_lfs() {
  data "$1" --get-regexp '^filter\.lfs\.' > "$door/lfs"
  while read -r key value; do
    case $value in
      true | 'git-lfs clean -- %f' | 'git-lfs smudge -- %f' | 'git-lfs smudge --skip -- %f') ;;
      'git-lfs filter-process' | 'git-lfs filter-process --skip') ;;
      *) return 1 ;;
    esac
  done < "$door/lfs"
  { echo '[filter "lfs"]'; sed 's/^filter\.lfs\.\([a-z]*\) /\1 = /' "$door/lfs"; } >> "$door/config"
}
"""

# git reads configuration, hooks and refs from GIT_COMMON_DIR, and HEAD and the index from GIT_DIR.
# So git writes to the agent's repository without using its configuration.
ENTER = r"""
theirs() {
  clean ${bare:+GIT_AUTHOR_NAME=mngr GIT_AUTHOR_EMAIL=mngr@localhost} \
    ${bare:+GIT_COMMITTER_NAME=mngr GIT_COMMITTER_EMAIL=mngr@localhost} \
    GIT_DIR="$gitdir" GIT_COMMON_DIR="$door" ${top:+"GIT_WORK_TREE=$top"} \
    GIT_OBJECT_DIRECTORY="${objects:-$common/objects}" ${index:+"GIT_INDEX_FILE=$index"} \
    GIT_ALLOW_PROTOCOL="$allowed" GIT_NO_LAZY_FETCH=1 GIT_OPTIONAL_LOCKS=0 \
    GIT_TERMINAL_PROMPT=0 GIT_LFS_SKIP_SMUDGE=1 git "$@"
}
enter() {
  locate "$@"
  ordinary "$gitdir/HEAD" "$gitdir/index" "$gitdir/info/sparse-checkout" \
    "$top/.gitignore" "$top/.gitattributes" "$top/.gitmodules" "$top/.mailmap"
  [ ! -h "$gitdir/index" ] || refuse "$gitdir/index is a link"
  # git prefers a .git in that directory when it serves a fetch.
  [ ! -e "$gitdir/.git" ] || replaced "$gitdir"
  [ "$furnished" = "$common" ] || furnish
  CDPATH= cd -- "$work" || absent
}
furnish() {
  furnished=$common foreign= private= version=0
  ordinary "$gitdir/config.worktree" "$common/config" "$common/packed-refs" "$common/shallow" \
    "$common/info/exclude" "$common/info/attributes" "$common/objects/info/alternates"
  pipe=$(find -H "$common/objects" "$common/refs" "$common/logs" '(' -type p -o -type l ')' \
    2>/dev/null | while IFS= read -r each; do [ ! -p "$each" ] || echo "$each"; done)
  [ -z "$pipe" ] || refuse "$pipe is not a regular file"
  # HEAD and worktrees: git asks which branches are checked out elsewhere.
  ln -s "$common/refs" "$common/packed-refs" "$common/shallow" "$common/logs" "$common/info" \
    "$common/HEAD" "$common/worktrees" "$door/" || exit 1
  [ ! -d "$common/reftable" ] || ln -s "$common/reftable" "$door/" || exit 1
  {
    printf '%s' "$quiet"
    [ -d "$common/logs" ] || printf '[core]\nlogAllRefUpdates = false\n'
    case $common in *[\"\\]*) ;; *) printf '[lfs]\nstorage = "%s/lfs"\n' "$common" ;; esac
  } > "$door/config"
  take_over "$common/config"
  [ -z "$private" ] || take_over "$gitdir/config.worktree"
  printf '[core]\nrepositoryFormatVersion = %s\n' "$version" >> "$door/config"
}
another_door() { door=$(mktemp -d "$door/nested.XXXXXX") && furnished= || exit 1; }
# Enter the repository in the directory $1 of this one, through its own door. Use it in a subshell.
enter_nested() {
  [ -e "$top/$1/.git" ] || return 1
  another_door
  index= objects= bare=-i
  enter "$top/$1" nested "$top"
}
"""

# `gc` removes directories with such a name that a killed process left.
OPEN = r"""
umask 077
objects= furnished= index= allowed=none
[ -d "$1" ] || mkdir -p "$1"
door=$(mktemp -d "$1/.put.XXXXXX") || exit 1
trap 'rm -rf "$door"' EXIT
trap 'exit 130' HUP INT TERM
shift
"""

VISIT = r"""
place=$1 kind=$2 source=$3 bare=$4 allowed=$5 index=$6 writes=$7; shift 7
enter "$place" "$kind" "$source"
[ -z "$writes" ] || [ -z "$foreign" ] ||
  refuse "only its repository defines the filter$foreign; define it in your global configuration"
"""

# A submodule is read like its parent; git itself would use the submodule's own settings.
NESTED = r"""
links() {
  theirs -c core.quotePath=false ls-files --stage | LC_ALL=C grep '^160000 ' > "$door/links"
}
tab=$(printf '\t') end='\0'
# Fail with 1 if nothing differs; a submodule that cannot be read counts as changed.
nested_changed() { (
  enter_nested "$1" || exit 1
  [ "$(theirs rev-parse -q --verify HEAD)" = "$2" ] || exit 0
  theirs status --porcelain --ignore-submodules=dirty > "$door/status" || exit 0
  [ -s "$door/status" ] || changed_links | grep -q .
) }
changed_links() {
  links || return 0
  while read -r mode oid path; do
    path=${path#*"$tab"}
    nested_changed "$path" "$oid" < /dev/null 2>/dev/null
    [ $? -eq 1 ] || printf " M %s$end" "$path"
  done < "$door/links"
}
"""

DOOR = CLEAN + LOCATE + CONSTANTS + SETTINGS + ENTER + OPEN
