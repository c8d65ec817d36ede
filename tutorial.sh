#!/bin/sh
# mngr, learnt by doing.
#
# Type these lines in a git repository of yours that has a commit and nothing uncommitted; a new one
# with a single README will do. They build on each other, so go from top to bottom. The agents here
# are everyday commands such as `sleep` and `cat`: whatever you can type, an agent can be.
#
# To keep the agents you already have out of it, play in a world of its own:
#   export MNGR_HOST_DIR="$HOME/mngr-tutorial"

# === First steps ===

# which mngr is this?
mngr --version

# see every command, with one line about each
mngr help

# read the manual of one command
mngr help create

# the same manual, from the command itself
mngr list --help

# a mistyped command costs nothing: mngr names the nearest one
mngr crate || echo "exit code $?"

# check that this machine has all that mngr needs
mngr doctor

# start your first agent: it gets a branch, a directory and a terminal of its own
mngr create fix --no-connect -- sleep 1000

# see what everybody is doing
mngr list

# it works in a git worktree, on the branch mngr/fix; your own files are left alone
git branch --list 'mngr/*'
git worktree list

# run something in its directory, and find the agent's commit in your repository
mngr exec fix 'echo hello > hello.txt; git add hello.txt; git commit -qm "Say hello"'
git log -1 --format=%s mngr/fix

# look at what it has done since it began
mngr diff fix

# stop it, and everything of its stays; start it again, and it goes on in the same place
mngr stop fix
mngr start fix

# take over what it committed
mngr merge fix

# remove it; if you did not mean it, there is an undo, which leaves it stopped
mngr destroy fix
mngr restore fix
mngr start fix

# === Creating agents ===

# without a name, mngr makes one up
mngr create --no-connect -- sleep 1000

# everything after -- is run as is, without a shell; for pipes and variables, start a shell
mngr create greet --no-connect -- sh -c 'echo "hello from $MNGR_AGENT_NAME" | tr a-z A-Z'

# c is short for create
mngr c quick --no-connect -- true

# no terminal at all: print what it prints, and return when it ends
mngr create hello --foreground -- echo 'hello, world'

# in the foreground, its exit code is the command's exit code
mngr create broken --foreground -- sh -c 'exit 3' || echo "exit code $?"

# a name can be taken only once
mngr create fix --no-connect -- sleep 1000 || echo "exit code $?"

# unless you say that the agent which is there will do
mngr create server --reuse --no-connect -- sleep 1000
mngr create server --reuse --no-connect -- sleep 1000

# see what would happen, and let nothing happen
mngr create maybe --dry-run -- sleep 1000

# label it, as often as you like, to find it again
mngr create lint --no-connect --label team=core --label ticket=431 -- true

# say which project it belongs to; the default is the directory's name
mngr create home --no-connect --project website -- true

# end it after a while, whatever it does
mngr create brief --no-connect --timeout 1s -- sleep 1000
mngr wait brief FAILED --timeout 1m

# instead of attaching, run a command of yours that knows the agent's name
mngr create shown --connect-command 'echo "ready: $MNGR_AGENT_NAME"' -- sleep 1000

# name its host, too; this machine is called localhost
mngr create near@localhost --no-connect -- sleep 1000

# a script wants the result as JSON
mngr create told --no-connect --format json -- true

# or wants the id and no other words
mngr create hush --no-connect --quiet -- true

# === What agents start with ===

# give it a variable
mngr create loud --foreground --env LEVEL=high -- sh -c 'echo "level $LEVEL"'

# give it the variables of a file
printf 'LEVEL=low\nCOLOR=green\n' > ~/levels.env
mngr create calm --foreground --env-file ~/levels.env -- \
  sh -c 'echo "level $LEVEL, $COLOR"'

# hand over a variable of your own
COLOR=green mngr create painter --foreground --pass-env COLOR -- \
  sh -c 'echo "painting it $COLOR"'

# what you do not hand over stays with you: no token gets in by accident
TOKEN=secret mngr create outsider --foreground -- sh -c 'echo "token: ${TOKEN:-none}"'

# put a file into its directory before it starts
echo 'be kind' > ~/rules.txt
mngr create ruled --foreground --upload-file ~/rules.txt:rules.txt -- cat rules.txt

# run a command in its directory before it starts
mngr create built --foreground --provision-command 'mkdir build; date > build/when' -- ls build

# give it a first message; it is typed once the program runs
mngr create clerk --no-connect -m 'two apples' -- \
  sh -c 'while read line; do echo "noted: $line"; done'

# or take the message from a file
echo 'three pears' > ~/order.txt
mngr create grocer --no-connect --message-file ~/order.txt -- \
  sh -c 'read line; echo "order: $line"'

# open a second window beside it, with a shell command in it
mngr create site --no-connect -w log='echo "log begins"; exec sleep 1000' -- sleep 1000

# choose the size of its terminal
mngr create narrow --no-connect --tmux-width 60 --tmux-height 20 -- \
  sh -c 'stty size; exec sleep 1000'

# record its terminal from the first byte on
mngr create film --no-connect --record -- echo 'action'

# === Where agents work ===

# your uncommitted changes do not travel by accident: mngr lists them and refuses
echo draft > draft.txt
mngr create early --no-connect -- true || echo "exit code $?"

# carry them along
mngr create dirty --foreground --include-dirty -- cat draft.txt
rm draft.txt

# work on a copy instead of a worktree
mngr create copied --foreground --transfer copy -- git status --short --branch

# work on a clone that borrows its objects from one mirror per repository
mngr create mirrored --no-connect --transfer mirror -- sleep 1000
mngr exec mirrored 'git remote; git branch --show-current'

# work in place, in your own directory
mngr create inplace --foreground --transfer none -- pwd

# choose the name of its branch; * stands for the agent's name
mngr create bold --no-connect --branch ':try/*' -- sleep 1000
git branch --list 'try/*'

# start at another commit
git tag v1
mngr create patch --no-connect --branch v1:hotfix -- sleep 1000

# work on a branch that exists
git branch existing
mngr create resume --foreground --branch existing -- git branch --show-current

# start where another agent is, with all it has not committed
mngr exec fix 'echo more > more.txt'
mngr create twin --foreground --from fix -- cat more.txt

# start from a directory that is no repository: the agent works on a copy of it
mkdir -p ~/plain
echo text > ~/plain/file.txt
mngr create outside --foreground --from ~/plain -- ls

# start from a git URL
git clone -q --bare . ~/origin.git
mngr create fetched --foreground --from "file://$HOME/origin.git" -- git log -1 --format=%s

# where does it work? its environment knows
mngr exec fix 'echo "$MNGR_AGENT_NAME works in $MNGR_AGENT_WORK_DIR"'

# === Listing ===

# each agent's state, how long it has been in it, its commits and the lines they changed
mngr list fix server

# ls is short for list; choose the columns you want
mngr ls --fields name,state,state_reason,labels.team

# everything about one agent: why it is in its state, its work, its screen, what to type next
mngr show fix

# where its work is
ls "$(mngr path fix)"

# for a script: one JSON document
mngr list --format json

# what such a document holds, as a JSON schema
mngr list --schema

# or one object per line
mngr list --format jsonl

# or a line of your own making
mngr list --format '{name}\t{state}\t{host.name}'

# a field that does not exist is an error, and the nearest one is named
mngr list --format '{nane}' || echo "exit code $?"

# === Choosing what to list ===

# those that run
mngr list --running

# those that ended badly or that you stopped: state flags add up
mngr list --failed --stopped

# by type, those that are done and those whose program is gone
mngr list --type command --done --lost

# those that are still alive, in whatever way
mngr list --active

# by label, with a value or with any
mngr list --label team=core
mngr list --label ticket

# by project
mngr list --project website

# by an expression over the fields
mngr list --include 'state == "FAILED" && exit_code == 3'

# and without those where another one holds
mngr list --exclude 'state == "DONE"' --format '{name}'

# expressions know texts, numbers and times
mngr list --include 'name.startsWith("s") && runtime_seconds < 3600.0'

# in the order you want, and only the first few
mngr list --sort name:desc --limit 3

# newest first
mngr list --sort create_time:desc --limit 1 --format '{name}'

# ids, one per line; unlike names they never change
mngr list --running --ids

# only these, with their names from standard input
printf 'fix\nserver\n' | mngr list --stdin

# how far each has come: commits made, commits missed, files not committed
mngr list --running --fields name,ahead,behind,dirty

# the hosts instead of the agents
mngr list --hosts

# on this machine, or on the hosts of one provider
mngr list --local --limit 2
mngr list --provider local --limit 2

# keep watching; Ctrl-C ends it
mngr list --watch 1

# another home is another world, with agents of its own
MNGR_HOST_DIR=~/elsewhere mngr list

# === Talking to agents ===

# type a message into its terminal, and know whether the program read it
mngr message clerk -m 'one melon'

# for a script: delivered is evidence that the program has read all of it
mngr msg clerk -m 'six eggs' --format '{outcome}'

# send what comes out of a pipe
git log -1 --format=%s | mngr message clerk

# send a file
echo 'a pound of flour' > ~/note.txt
mngr message clerk --message-file ~/note.txt

# to several at once
mngr create cook --no-connect -- cat
mngr message clerk cook -m 'dinner at eight'

# to all that a list names
mngr list --include 'name in ["clerk", "cook"]' --ids |
  mngr message - -m 'dinner at nine'

# say what would be sent, and send nothing
mngr message clerk -m 'never mind' --dry-run

# an agent that has stopped cannot read
mngr stop cook
mngr message cook -m 'are you there?' || echo "exit code $?"

# start it for that
mngr message cook -m 'wake up' --start

# what is on its screen?
mngr capture clerk

# and all that has scrolled away, with colours
mngr capture clerk --full --ansi

# another of its windows
mngr capture site --window log

# what it showed last, although it has ended
mngr capture greet

# everything it has printed since it was created; -f follows it until it ends
mngr logs greet
mngr logs greet -f

# attach to it; C-b d detaches, and it runs on
mngr connect clerk

# only watch, and do not start it if it has stopped
mngr connect clerk --read-only --no-start

# attach in a way of your own, in a new window for instance; this only prints the command
mngr connect clerk --connect-command 'echo "$MNGR_CONNECT_ARGV"'

# the agents' tmux has settings of its own: this changes its prefix key to C-a
echo 'set -g prefix C-a' > ~/.mngr/tmux.user.conf

# === Running commands beside agents ===

# what has it changed?
mngr exec fix 'git status --short'

# x is short for exec; after -- stands a program with its arguments, without a shell
mngr x fix -- echo 'no $SHELL here'

# the exit code is the command's own
mngr exec fix 'exit 7' || echo "exit code $?"

# hand it your standard input
echo 'print(6 * 7)' | mngr exec -i fix python3

# in a directory below its own
mngr exec fix 'mkdir -p docs'
mngr exec fix --cwd docs 'basename "$PWD"'

# not longer than this
mngr exec fix --timeout 1s 'sleep 60' || echo "exit code $?"

# print output as it comes
mngr exec fix --stream 'for n in 1 2 3; do echo "step $n"; done'

# the same in many places, as one JSON document
mngr exec fix server 'git rev-parse --abbrev-ref HEAD' --format json

# in all places that a list names
mngr list --running --format '{name}' | mngr exec - 'git log -1 --format=%s'

# one after the other, until one fails
mngr exec fix server --on-error abort 'test -e hello.txt' || echo "exit code $?"

# an agent need not run for that, but it can be started first
mngr stop server
mngr exec server --start 'echo "$MNGR_AGENT_NAME is up"'

# === Waiting and watching ===

# wait until an agent has ended, or wants something of you
mngr create task --no-connect -- sh -c 'sleep 0.2; echo finished'
mngr wait task

# wait for one state, and give up in time: exit code 124
mngr wait fix DONE --timeout 1s || echo "exit code $?"

# wait for the first of several
mngr wait --any fix task --timeout 1m

# wait for all of a kind, and take the result as you like it
mngr list --label team=core --ids | mngr wait - --format '{name} {state}'

# wait for an agent that does not exist: exit code 4
mngr wait nobody || echo "exit code $?"

# what has happened to it so far?
mngr event task

# how did it end?
mngr event task --include 'type == "agent_exited"' --tail 1

# the first event only, for a script
mngr event task --head 1 --format '{type}'

# only those events that one source wrote
mngr event task launcher

# follow along as things happen to it; Ctrl-C ends it
mngr event fix --follow --format jsonl

# watch all agents: a line of JSON for each, and one for each change
mngr observe

# only which agents come and go, in words of your own
mngr observe --discovery-only --format '{agent.name} {agent.state}'

# === Conversations, cost and limits ===

# give an agent an hour; over a limit it would be ended, and everything of its would stay
mngr create slow --no-connect --timeout 1h -- sleep 1000

# what may it use?
mngr limit slow

# change that while it runs: a second has passed already, so it is ended, and its state says why
mngr limit slow --timeout 1s
mngr wait slow FAILED --timeout 1m

# lift the limit, and let it go on
mngr limit slow --timeout none
mngr start slow

# coding agents tell what they use, so dollars and tokens can be limited too; not so with others
mngr limit slow --max-cost 5 --max-tokens 2M || echo "exit code $?"

# show the usage so far, of all agents or by ticket; nothing yet: no agent here uses a model
mngr usage
mngr usage --by label:ticket

# what did each cost, and for how long has it done nothing?
mngr list --fields name,state,idle,tokens,cost

# your own prices: dollars for a million tokens of models whose names begin so
mngr config set prices.my-model.input 0.5
mngr config set prices.my-model.output 2

# does anybody ask for a permission?
mngr answer --all-pending

# the answer to one who does would be: mngr answer slow --allow; this one asks nothing
mngr answer slow || echo "exit code $?"

# read the conversation with a coding agent; a plain command keeps none
mngr transcript slow || echo "exit code $?"

# send a message and wait for the reply; again, that requires an agent that replies
mngr message slow -m 'how is it going?' --wait --timeout 10m || echo "exit code $?"

# === Stopping, starting, renaming ===

# s is short for stop; stopping what has stopped is no error
mngr s server
mngr stop server

# start it and see that it runs
mngr start server
mngr wait server RUNNING --timeout 1m

# stop it and start it again: a new process with the same command and directory
mngr restart server

# end its program at once, without the time it would get to finish
mngr kill server
mngr start server

# say what would be stopped
mngr stop --all --dry-run

# stop those that a list names
mngr list --include 'name in ["near", "shown"]' --ids | mngr stop -

# put an agent aside: it is stopped and left out of lists
mngr archive near
mngr list --archived

# starting it brings it back
mngr start near
mngr stop near --archive

# give it another name, also while it runs; its id and branch stay
mngr rename server web

# labels can be set later, too
mngr label web team=core since=today

# see them, and drop one
mngr label web
mngr label web --remove since

# label many
mngr list --running --ids | mngr label - seen=yes

# === Destroying and restoring ===

# mngr asks before it destroys work that exists nowhere else; without a terminal it refuses
mngr exec web 'echo precious > found.txt'
mngr destroy web --headless || echo "exit code $?"

# say that you mean it
mngr destroy web --force

# what can be brought back?
mngr restore --list

# bring it back with every file, under another name if you like
mngr restore web --as web2
mngr exec web2 'cat found.txt'

# remove the branch that mngr made as well
mngr destroy web2 --force --remove-created-branch

# a no from a pipe counts: an agent that runs is kept
echo n | mngr destroy fix || echo "exit code $?"

# rm is short for destroy; destroy all that are done
mngr list --include 'state == "DONE"' --ids | mngr rm - --force --quiet

# say what would be destroyed
mngr destroy fix --force --dry-run

# empty the trash of what was destroyed long ago
mngr restore --purge --older-than 30d --force

# and of one agent, for good
mngr restore hello --purge --force

# leftovers: see what would go, then let it go
mngr gc --dry-run
mngr gc

# empty the whole trash now
mngr gc -S trash.keep=0s

# === Moving work ===

# what did it commit, and what not?
mngr exec fix 'echo one > one.txt; git add one.txt; git commit -qm "Add one"'
mngr exec fix 'echo two > two.txt'
mngr diff fix --commits
mngr diff fix --uncommitted

# in short, or in some files only
mngr diff fix --stat
mngr diff fix -- one.txt

# the output is a patch; would it apply here?
mngr diff fix -- two.txt | git apply --check

# fetch the commits of an agent that works on a clone
mngr exec mirrored 'echo far > far.txt; git add far.txt; git commit -qm "From afar"'
mngr pull mirrored
git log -1 --format=%s mngr/mirrored

# under a name of your own
mngr pull mirrored --branch review/mirrored

# copy a file of its directory, committed or not, to where you are or elsewhere
mngr pull fix two.txt ~/two.txt
cat ~/two.txt

# a file that differs is not overwritten unless you say so
echo mine > ~/two.txt
mngr pull fix two.txt ~/two.txt || echo "exit code $?"
mngr pull fix two.txt ~/two.txt --force

# give it a file
mngr push bold ~/note.txt note.txt
mngr exec bold 'cat note.txt'

# give it what you committed since: only a fast-forward, so nothing of its can be lost
git commit -q --allow-empty -m 'Progress'
mngr push patch

# === Merging, cloning, snapshots ===

# see first what a merge would bring, then merge
mngr merge fix --dry-run
mngr merge fix

# one commit instead of its history, and only if a check passes
mngr merge mirrored --squash --check 'test -e far.txt'

# if the check fails, the merge is taken back
mngr exec bold 'echo bad > bad.txt; git add bad.txt; git commit -qm "Add bad"'
mngr merge bold --check 'test ! -e bad.txt' || echo "exit code $?"

# make another agent with the same program and the same work
mngr clone fix
mngr clone fix other --label attempt=2 -- sleep 500

# keep this moment of its work
mngr snapshot create fix --name before

# ruin it, and go back; what would be lost by that is kept as another snapshot
mngr exec fix 'rm two.txt; echo oops > one.txt'
mngr snapshot restore fix before
mngr exec fix 'cat one.txt two.txt'

# see all of its snapshots, and forget one
mngr snapshot list fix
mngr snap destroy fix 2

# try something else from that moment on
mngr create retry --foreground --from fix/before -- cat two.txt

# moving to another host works like this; here there is only one
mngr migrate fix localhost || echo "exit code $?"

# === Many at once ===

# one line of JSON for each agent; each result is a line, too
echo '{"name": "unit", "args": ["true"]}' > ~/jobs.jsonl
echo '{"name": "types", "args": ["false"]}' >> ~/jobs.jsonl
mngr create --batch ~/jobs.jsonl --label run=nightly

# wait for all of them, with exit code 1 if one failed; show those that did
mngr list --label run=nightly --ids | mngr wait - --timeout 5m || echo "exit code $?"
mngr list --label run=nightly --failed --format '{name}: exit code {exit_code}'

# run those again
mngr list --label run=nightly --failed --ids | mngr start -

# from a pipe, at most two at a time; options hold for all lines
for n in 1 2 3; do echo "{\"name\": \"part$n\"}"; done |
  mngr create --batch - --max-parallel 2 -- sleep 1000

# a line that is wrong is named, and the others are created: exit code 3
printf '%s\n' '{"name": "good", "args": ["true"]}' '{"nome": "bad"}' |
  mngr create --batch - || echo "exit code $?"

# stop a whole batch
mngr list --include 'name.startsWith("part")' --ids | mngr stop - --quiet

# === Settings ===

# every setting, and where its value comes from
mngr config list --origin

# read one, change it, and go back to the default
mngr config get trash.keep
mngr config set trash.keep 30d
mngr config unset trash.keep

# for one command only, with a variable or with -S
MNGR__TRASH__KEEP=1d mngr config get trash.keep
mngr -S trash.keep=2h config get trash.keep

# a setting that does not exist is an error
mngr config set trash.kep 1d || echo "exit code $?"

# a slip in a file or a variable stops nothing; doctor shows them all
MNGR__TRASH__KEP=1d mngr list
MNGR__TRASH__KEP=1d mngr doctor || echo "exit code $?"

# never ask anything, as --headless does: in this shell, or from now on
export MNGR_HEADLESS=1
mngr config set headless true

# settings of this project: once it has a folder .mngr, config set writes there
mkdir .mngr
mngr config set trash.keep 30d
mngr create keeper -- sleep 1000

# give an option a default: from now on, create does not attach
mngr config set commands.create.connect false

# where are the files? yours, the project's, and yours for this project
mngr config path --scope user
mngr config path --scope project
mngr config path --scope local

# open your settings in an editor; they are checked when you close it
EDITOR=true mngr config edit

# a template is a set of options for create
mngr config set create_templates.review.branch ':review/*'
mngr config set create_templates.review.label '["role=review"]'
mngr create check --template review -- true

# an agent type is a program with a name; derive one from another
mngr config set agent_types.napper.command 'sleep 1000'
mngr create nap napper

# === Tutorials that are tests ===

# a tutorial such as this one can be tested, block by block; begin with a small one
mkdir -p ~/greet/tests
printf '%s\n' '# say hello' 'echo hello' '' '# say it loudly' > ~/greet/tutorial.sh

# which of its blocks has no test?
(cd ~/greet && mngr tutorial check) || echo "exit code $?"

# see what tests would be written, then have them written: plain ones, yours to improve
(cd ~/greet && mngr tutorial scaffold --dry-run)
(cd ~/greet && mngr tutorial scaffold)

# do the tutorial and its tests say the same now?
(cd ~/greet && mngr tutorial check --no-results)

# let Claude Code know how such tests are written: it gets a command for that
(cd ~/greet && mngr tutorial install-commands)

# an agent can fill in what is only a comment yet; this is what it would be told
(cd ~/greet && mngr tutorial fill --dry-run)

# and one can write good tests for what has none; here, there is nothing to do
(cd ~/greet && mngr tutorial sync --dry-run)

# === A hundred agents, one branch ===

# a project with a bug, and a test that has found it
mkdir -p ~/shop/tests
printf '%s\n' 'def total(prices):' '    amount = 0' '    for price in prices:' \
  '        amount -= price' '    return amount' > ~/shop/shop.py
printf '%s\n' 'from shop import total' '' 'def test_total():' \
  '    assert total([2, 3]) == 5' > ~/shop/tests/test_shop.py
(cd ~/shop && git init -q -b main && git add -A)
(cd ~/shop && git config user.name Me && git config user.email me@example.com)
(cd ~/shop && git commit -qm 'Open the shop')

# which agents would a run launch there? this runs the tests, and launches none
(cd ~/shop && mngr tmr run --type mechanic --only failing --dry-run)

# one agent for each failing test (mechanic is built in and needs no account), then one branch
(cd ~/shop && mngr tmr run --name shop --type mechanic --only failing --yes)
mngr tmr show shop
git -C ~/shop log --oneline main..tmr/shop
mngr tmr report shop --out ~/report

# which runs were there?
mngr tmr list --format '{run} {status}'

# see the whole of it on a larger example, in a minute or two
mngr help demo

# === Plugins, completion, manuals ===

# which plugins are there, and what do they add?
mngr plugin list

# a plugin is a Python module that registers something; name it in the settings
mkdir -p ~/plugins
echo 'def register(to): to.agent_type("parrot", "mngr.agents.command:CommandType")' \
  > ~/plugins/parrot.py
PYTHONPATH=~/plugins mngr -S 'plugins.modules=["parrot"]' plugin list

# do without it, and use it again
PYTHONPATH=~/plugins mngr -S 'plugins.modules=["parrot"]' plugin disable parrot
PYTHONPATH=~/plugins mngr -S 'plugins.modules=["parrot"]' plugin enable parrot

# complete commands, options and names in your shell; bash, zsh and fish are known
mngr completion bash

# read a manual page
mngr man create

# the names of all commands, for a script
mngr help --format '{name}'

# only what is wrong with this machine; then mend what can be mended
mngr doctor --format '{status} {detail}'
mngr doctor --fix

# when you have had enough: end all agents; their work stays in the trash for two weeks
mngr list --ids | mngr destroy - --force
