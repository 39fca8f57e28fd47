"""`fix` finds an error whatever its numbers and paths are, and says what ended it, if anything.

Two commands are the same check only if their grammar says so, the line that is looked for is the
one that tells most, and what only suggests an end is marked as a guess.
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from tests.support.shell import Shell
from tests.support.transcripts import Transcript
from tests.support.writing import OTHER, SESSION, THIRD

from assoc_ingest.ask.fix import line_with, telling_lines, words_of
from assoc_ingest.ask.shell import Likeness, is_same, likeness, only_reads, parsed
from assoc_ingest.mcp.index import Index, Settings
from assoc_ingest.mcp.server import Tools
from assoc_ingest.questions.fix import Fixes
from assoc_ingest.sync.run import sync

ERROR = "E   ImportError: cannot import name 'Pool' from 'basin' (/srv/demo/basin.py)"
TRACEBACK = """Traceback (most recent call last):
  File "/srv/demo/app.py", line 12, in <module>
    from basin import Pool
ImportError: cannot import name 'Pool' from 'basin' (/home/ada/basin.py)
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def fixed(home: Path, session: str, second: int, name: str = "basin.py") -> None:
    """Write a conversation in which an edit ended the error."""
    talk = Transcript(home, session, "/srv/demo")
    talk.bash(second, "pytest -q tests", f"line {second}\n{ERROR}\n", is_error=True)
    talk.bash(second + 2, "cat basin.py", "size = 1")
    talk.tool(
        second + 4, "Edit", file_path=f"/srv/demo/{name}", old_string="size = 1",
        new_string="class Pool: ...",
    )  # fmt: skip
    talk.bash(second + 6, "cd /srv/demo && pytest -q", "3 passed")


def test_what_ended_an_error_comes_with_its_steps(shell: Shell, home: Path) -> None:
    fixed(home, SESSION, 10)
    sync(shell.database, [home])
    (item,) = shell.items("fix", "ImportError: cannot import name Pool from basin")
    assert (item["kind"], item["what"], item["count"]) == ("edited", "edited basin.py", 1)
    (one,) = item["occurrences"]
    assert one["ref"] == f"{SESSION[:8]}:2"
    assert one["error"] == ERROR.replace("   ", " ")
    assert [(step["ref"], step["action"], step["text"]) for step in one["steps"]] == [
        (f"{SESSION[:8]}:5", "edit", "-1 +1 · size = 1 → class Pool: ...")
    ]
    assert one["ended"]["ref"] == f"{SESSION[:8]}:7"
    assert shell("show", one["ended"]["ref"]) == 0
    assert shell("fix", ERROR) == 0
    assert "Found 1 time in 1 conversation; 1 fixed." in shell.out
    assert f"{SESSION[:8]}:5  edit  /srv/demo/basin.py" in shell.out


def test_of_many_steps_the_last_before_the_end_are_shown(shell: Shell, home: Path) -> None:
    talk = Transcript(home, SESSION, "/srv/demo")
    talk.bash(0, "pytest -q tests", ERROR, is_error=True)
    for number in range(12):
        talk.tool(2 + number, "Edit", file_path="/srv/demo/basin.py", old_string=f"{number}",
                  new_string=f"{number + 1}")  # fmt: skip
    talk.bash(32, "pytest -q tests", "3 passed")
    sync(shell.database, [home])
    (item,) = shell.items("fix", ERROR)
    steps = [step["text"] for step in item["occurrences"][0]["steps"]]
    assert steps == [f"-1 +1 · {number} → {number + 1}" for number in range(4, 12)]


@pytest.mark.parametrize(
    ("ended", "guesses", "said"),
    [
        (0, 0, "nothing shows that it was fixed."), (1, 0, "1 fixed."),
        (1, 1, "1 fixed (a guess)."), (2, 2, "2 fixed (all guessed)."),
        (3, 1, "3 fixed (1 of them guessed)."),
    ],
)  # fmt: skip
def test_what_is_a_guess_is_said(ended: int, guesses: int, said: str) -> None:
    of = {"errors": 3, "ended": ended, "guesses": guesses, "conversations": 1}
    assert Fixes(of, 0, [], []).said == f"Found 3 times in 1 conversation; {said}"


def test_the_most_frequent_ending_comes_first_and_what_never_ended_last(
    shell: Shell, home: Path
) -> None:
    fixed(home, SESSION, 10)
    fixed(home, OTHER, 500)
    fixed(home, THIRD, 900, "other.py")
    hopeless = Transcript(home, THIRD[:-1] + "9", "/srv/demo")
    hopeless.bash(2000, "pytest", ERROR, is_error=True)
    hopeless.bash(2010, "pytest", ERROR, is_error=True)
    sync(shell.database, [home])
    found = shell.items("fix", ERROR)
    assert [(one["what"], one["count"]) for one in found] == [
        ("edited basin.py", 2), ("edited other.py", 1), ("nothing shows that it was fixed", 1),
    ]  # fmt: skip
    first, *_, last = found
    assert [one["key"] for one in first["occurrences"]] == [OTHER[:8], SESSION[:8]]
    assert (last["kind"], last["occurrences"][0]["times"]) == ("never", 2)
    shell("fix", ERROR, "--json", "-n", "1")
    page = json.loads(shell.out)
    assert page["of"] | {"error": ""} == {
        "error": "", "errors": 4, "ended": 3, "guesses": 0, "conversations": 4, "is_exact": True,
    }  # fmt: skip
    shell("fix", ERROR, "--json", "-n", "5", "--cursor", page["next"])
    assert json.loads(shell.out)["items"] == found[1:]
    contract = shell.json("schema", "--json")
    assert isinstance(contract, dict)
    assert first.keys() == contract["fix"].keys()
    assert first["occurrences"][0].keys() == contract["fix"]["occurrences"].keys()


def test_a_traceback_on_standard_input_is_known_by_its_last_line(
    shell: Shell, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixed(home, SESSION, 10)
    sync(shell.database, [home])
    monkeypatch.setattr("sys.stdin", io.StringIO(TRACEBACK))
    assert shell("fix") == 0
    assert "edited basin.py (1 time" in shell.out


def test_an_error_about_something_else_is_said_to_be_one(shell: Shell, home: Path) -> None:
    fixed(home, SESSION, 10)
    sync(shell.database, [home])
    assert shell("fix", "cannot import name 'Tap' from 'sink'") == 0
    assert "The same one about something else" in shell.out
    assert shell("fix", "cannot import word 'Pool' from 'basin'") == 1
    assert "No failed call has this error" in shell.err


def test_an_error_that_a_command_only_showed_is_none(shell: Shell, home: Path) -> None:
    talk = Transcript(home, SESSION, "/srv/demo")
    talk.bash(1, "grep -n ImportError build.log", ERROR)
    talk.tool(5, "Read", ERROR, file_path="/srv/demo/build.log")
    sync(shell.database, [home])
    assert shell("fix", ERROR) == 1
    talk.bash(9, "pytest | tail -3", ERROR)  # it failed, though its last program did not
    sync(shell.database, [home])
    assert [one["kind"] for one in shell.items("fix", ERROR)] == ["never"]


def test_what_was_run_or_read_in_between_is_what_ended_it(shell: Shell, home: Path) -> None:
    ran = Transcript(home, SESSION, "/srv/demo")
    ran.bash(1, "npm test", "Error: Cannot find module 'left-pad'", is_error=True)
    ran.bash(3, "npm install left-pad", "added 1 package")
    ran.bash(5, "npm test", "ok")
    read = Transcript(home, OTHER, "/srv/demo")
    unread = "File has not been read yet. Read it first."
    path = "/srv/demo/a.py"
    read.tool(1, "Edit", unread, is_error=True, file_path=path, old_string="a", new_string="b")
    read.tool(3, "Read", "a", file_path=path)
    read.tool(5, "Edit", file_path=path, old_string="a", new_string="b")
    sync(shell.database, [home])
    assert [one["what"] for one in shell.items("fix", "Cannot find module left-pad")] == [
        "ran npm install left-pad"
    ]
    assert [one["kind"] for one in shell.items("fix", unread)] == ["looked"]


def test_numbers_paths_hashes_and_quotes_make_no_difference() -> None:
    one = "E  KeyError: 'x' at 0x7f3a99 in /srv/a/b.py:12 (took 3.5s, 1a2b3c4d5e6f7)"
    other = 'KeyError: "x" at 0xdead1 in C:\\work\\b.py (took 17s, ffeeddccbbaa998)'
    assert words_of(one)[1:] == words_of(other) == ["keyerror", "x", "at", "in", "took"]
    assert line_with(f"first\n{one}\n", words_of(other)) == one
    assert line_with("KeyError: 'y' at 1", ["keyerror", "x"]) is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (TRACEBACK, TRACEBACK.split("\n")[3]),
        (
            "compiling\nerror[E0308]: mismatched types\n --> a.rs:1\n",
            "error[E0308]: mismatched types",
        ),
        ("one\ntwo", "one"),
        (
            "[lint] $ golangci-lint run\npool.go:40:1: Client returns interface (ireturn)\n"
            "func Client() {\n1 issues:\n[lint] ERROR task failed\n",
            "pool.go:40:1: Client returns interface (ireturn)",
        ),
        (
            "FAIL basin/cmd [setup failed]\n# basin/cmd\nmain.go:43:12: pattern ui: no files\nFAIL",
            "main.go:43:12: pattern ui: no files",
        ),
        (
            "npm ERR! code ELIFECYCLE\nnpm ERR! errno 1\nError: Cannot find module 'left-pad'\n"
            "npm ERR! Exit status 1",
            "Error: Cannot find module 'left-pad'",
        ),
        (
            "  204 │ \t * @throws Error if there is no key\n  × expected a semicolon\n"
            "  × Some errors were emitted while applying fixes.\nCommand exited with code 1",
            "× expected a semicolon",
        ),
        (
            "error: failed to push some refs to 'x'\nhint: error",
            "error: failed to push some refs to 'x'",
        ),
        ("Exit code 2\nmake: *** [all] Error 1\n", ""),
        ("(no output)\n\nCommand exited with code 1", ""),
        ("<tool_use_error>Sibling tool call errored</tool_use_error>", ""),
        ("\n \n12:34\n", ""),
    ],
)
def test_the_line_that_tells_what_is_wrong_is_found(text: str, line: str) -> None:
    assert (telling_lines(text) or [""])[0] == line


def test_of_lines_that_state_an_error_the_rarest_is_looked_for(shell: Shell, home: Path) -> None:
    """A wrapper that nobody has listed is in every output of its program."""
    wrapper = "error: step 'compile' of the pipeline stopped"
    lacking = {SESSION: "water", OTHER: "light", THIRD: "warmth"}
    for second, session in enumerate(lacking):
        talk = Transcript(home, session, "/srv/demo")
        talk.bash(
            second, "just build", f"{wrapper}\nerror: lack of {lacking[session]}", is_error=True
        )
    sync(shell.database, [home])
    found = shell.json("fix", f"{wrapper}\nerror: lack of light", "--json")
    assert isinstance(found, dict)
    assert found["of"]["error"] == "error: lack of light"
    assert found["of"]["conversations"] == 1


def test_an_error_with_a_number_inside_of_a_word_is_found(shell: Shell, home: Path) -> None:
    talk = Transcript(home, SESSION, "/srv/demo")
    talk.bash(1, "cargo build", "error[E0308]: mismatched uint64 types", is_error=True)
    sync(shell.database, [home])
    assert len(shell.items("fix", "error[E0308]: mismatched uint64 types")) == 1


DIFFERENT = r"""
git status ~ git -C x rev-parse HEAD
mix test ~ mix deps.get
python -m pytest ~ python -c "import a"
kubectl -n p get pods ~ kubectl -n p delete pod x
npm --prefix web run build ~ npm --prefix web install
make -j4 test ~ make clean
cargo +nightly build ~ cargo fmt
docker -H x build . ~ docker ps
bundle exec rspec ~ bundle exec rubocop
psql -c "select 1" ~ psql -l
ssh host a ~ ssh host b
ssh host make test ~ ssh other make test
sudo systemctl restart nginx ~ sudo apt-get update
mise run lint ~ mise run test:ci
npm test ~ npm install
npm run lint ~ npm run build
yarn lint ~ yarn build
uv run pytest ~ uv run mypy
poetry run pytest ~ poetry run mypy .
npx tsc ~ npx eslint .
go test ./... ~ go build ./...
go mod tidy ~ go mod download
docker compose up ~ docker compose down
docker compose -f a.yml up ~ docker compose -f a.yml logs
docker exec db psql -l ~ docker exec web psql -l
git stash pop ~ git stash list
git -c a=b commit ~ git -c a=b push
env A=b npm test ~ env A=b npm install
timeout 60 pytest ~ timeout 60 mypy .
cd web && npm test ~ cd api && npm test
cd app && npm test ~ cd app && npm run build
pytest tests/a.py ~ pytest tests/b.py
pytest -k one ~ pytest -k two
python a.py ~ python b.py
python manage.py test ~ python manage.py migrate
python3 -c "a" ~ python3 -c "b"
node -e "a()" ~ node b.js
bash -c "npm test" ~ bash -c "npm install"
bash a.sh ~ bash b.sh
cat a | grep x ~ cat b | grep x
pip install a ~ pip install b
npm install a ~ npm install
./gradlew test ~ ./gradlew clean
terraform plan ~ terraform apply
gh pr view 1 ~ gh pr create
aws s3 ls ~ aws s3 cp a b
aws --profile p s3 ls ~ aws --profile p ec2 describe-instances
kubectl rollout status a ~ kubectl rollout undo a
dotnet test ~ dotnet build
rails db:migrate ~ rails test
systemctl start a ~ systemctl start b
just test ~ just lint
echo hi ~ npm test
prettier --check . ~ prettier --write .
cargo test ~ cargo clippy
brew install a ~ brew update
tox -e py311 ~ tox -e lint
xargs rm ~ xargs cat
git -C x status ~ git -C x log
docker compose -f a.yml -p p up ~ docker compose down
kubectl get pods ~ kubectl get svc
npm --prefix web test ~ npm --prefix api test
make -C a test ~ make -C b test
ssh -i k host a ~ ssh -i k host b
poetry -C x run pytest ~ poetry -C x run mypy
uv pip install x ~ uv pip list
python -m http.server ~ python -m json.tool
python -m pip install x ~ python -m pytest
go vet ./... ~ go test ./...
sudo -u postgres psql -c "x" ~ sudo -u postgres psql -l
npx --yes playwright test ~ npx playwright install
pnpm -r test ~ pnpm -r build
pnpm --filter web test ~ pnpm --filter api test
yarn workspace a test ~ yarn workspace b test
git submodule update ~ git submodule status
bash -c 'cd a && make test' ~ bash -c 'cd a && make lint'
docker run --rm -v a:b img pytest ~ docker run --rm img mypy
cat x | psql ~ cat x | mysql
ls a ~ ls b
php artisan test ~ php artisan migrate
java -jar a.jar ~ java -jar b.jar
mvn test ~ mvn -q package
deno task a ~ deno task b
bun test ~ bun run build
nx test app ~ nx build app
nx run app:test ~ nx run app:build
turbo run test ~ turbo run build
terraform -chdir=a plan ~ terraform -chdir=b plan
aws s3 cp a b ~ aws s3 rm a
sqlite3 a.db "select 1" ~ sqlite3 a.db .tables
curl http://a ~ curl http://b
npm ci ~ npm install
kubectl apply -f a.yaml ~ kubectl apply -f b.yaml
cargo test -p a ~ cargo test -p b
npm test -- a.test.js ~ npm test -- b.test.js
ssh host 'npm test' ~ npm test
docker exec c npm test ~ npm test
gcloud compute instances list ~ gcloud compute disks list
helm -n x upgrade a ~ helm -n x rollback a
systemctl --user start a ~ systemctl --user stop a
apt-get -y install a ~ apt-get -y remove a
brew services start a ~ brew services stop a
conda run -n e pytest ~ conda run -n e mypy
nix develop -c make test ~ nix develop -c make lint
flutter test ~ flutter build
swift test ~ swift build
dotnet test ~ dotnet run
composer run test ~ composer run lint
mix test ~ mix format
rake test ~ rake db:migrate
perl -e 'a' ~ perl -e 'b'
ruby -e 'a' ~ ruby x.rb
node a.js ~ node b.js
tsx a.ts ~ tsx b.ts
redis-cli ping ~ redis-cli flushall
mysql -e "a" ~ mysql -e "b"
supabase db push ~ supabase db reset
prisma migrate dev ~ prisma generate
vercel deploy ~ vercel env pull
fly deploy ~ fly logs
gh run view 1 ~ gh run rerun 1
git config a ~ git config --list
openssl x509 ~ openssl req
sudo apt update ~ sudo apt install x
time npm test ~ time npm run build
nohup npm start & ~ nohup npm test &
doppler run -- npm test ~ doppler run -- npm start
npm run test:unit ~ npm run test:e2e
make ~ make test
make test ~ make test lint
hatch run test ~ hatch run lint
pre-commit run ~ pre-commit install
act push ~ act pull_request
claude mcp list ~ claude mcp add
assoc-ingest sync ~ assoc-ingest search
"""
SAME = r"""
pytest -q tests/a.py ~ .venv/bin/pytest tests/a.py -x
cd app && npm test ~ npm test
cd /srv/app && npm test ~ cd app && npm run test
npm t ~ npm test 2>&1 | tail -5
npm --prefix web run build ~ cd web && npm run build
pytest -q tests/a.py ~ cd x && pytest 2>&1 | tail -3
FOO=1 cargo build ~ cargo build --release
cargo +nightly build ~ cargo build
python -m pytest -q ~ uv run pytest
python3.11 -m pytest tests ~ poetry run pytest -x tests
python3 -m pip install -r a.txt ~ pip install -r a.txt
sudo systemctl restart nginx ~ systemctl restart nginx
timeout -k 5 60 make -j4 test ~ make test
env A=b C=d go test ./... ~ go test -v ./... > out.txt 2>&1
git -C x push origin main ~ cd x && git push origin main
git -c user.name=a commit -m "x" ~ git commit -m "y"
docker -H tcp://a build -t a . ~ docker build -t a .
docker-compose -f a.yml up -d ~ docker compose up
kubectl -n p get pods ~ kubectl --context c get pods
bash -lc "cd app && npm test" ~ npm test
ssh -p 22 host make test ~ ssh host 'make test'
bundle exec rspec spec/a_spec.rb ~ rspec spec/a_spec.rb
npx tsc --noEmit ~ node_modules/.bin/tsc --noEmit
mise run lint 2>&1 | head -50 ~ mise run lint
mise r lint ~ mise run lint && mise run test
yarn lint ~ yarn run lint
go test ./pkg/a ~ go test ./...
pytest tests/a.py::test_x ~ pytest tests/a.py
npm install left-pad ~ npm install left-pad right-pad
git push origin main ~ git push --force origin main
nohup python app.py & ~ python app.py
(cd web && npm test) ~ cd web && npm test
set -o pipefail; make test | tee log ~ make test
echo y | npm init ~ npm init
python - <<'PY'\nprint(1)\nPY ~ python3 - <<'EOF'\nprint(1)\nEOF
if npm test; then echo ok; fi ~ npm test
git add -A && git commit -m "a b" ~ git add x && git commit -m "a b"
.\gradlew.bat test ~ ./gradlew test
cmd /c npm test ~ npm test
powershell -Command "npm test" ~ npm test
pre-commit run ~ pre-commit run --all-files
hatch run test ~ hatch run test -v
docker compose -f a.yml exec db psql -l ~ docker-compose exec db psql -l
git -C /a/b status ~ cd /a/b && git status
poetry -C x run pytest ~ cd x && poetry run pytest
yarn --cwd web build ~ cd web && yarn run build
pnpm --dir web run build ~ cd web && pnpm build
make -C web build ~ cd web && make build
FOO=bar BAZ=1 ./run.sh ~ bash run.sh
./scripts/run.sh a ~ sh scripts/run.sh a
sudo -E -u root env A=1 timeout -s KILL 5m npm test ~ npm test
cargo +nightly test --release ~ cargo test
go test -race -count=1 ./... ~ go test ./...
npx -y eslint@8 . ~ npx eslint .
npm run test -- --watch=false ~ npm test
uvx ruff check . ~ ruff check .
kubectl --kubeconfig x -n y logs pod ~ kubectl logs pod -n y
ssh -o A=b -p 22 u@h "cd x && make test" ~ ssh u@h 'cd x; make test'
docker build -t a -f Dockerfile . ~ DOCKER_BUILDKIT=1 docker build -t a .
/usr/bin/env python3 a.py ~ python a.py
cat sql | psql -d x ~ psql -d x < sql
npm test 2>/dev/null >out.log ~ npm test
(npm test; wait) ~ npm test
while true; do npm test; done ~ npm test
for f in a b; do pytest $f; done ~ pytest $f
set -euo pipefail\nnpm test ~ npm test
source .venv/bin/activate && pytest ~ pytest
. venv/bin/activate; python -m pytest ~ pytest
export A=b; npm test ~ npm test
pushd web; npm test; popd ~ cd web && npm test
npm test || (echo failed; exit 1) ~ npm test
bundle exec rake test ~ bin/rake test
bin/rails test ~ bundle exec rails test
mise exec -- go test ./... ~ go test ./...
nix develop -c make test ~ make test
timeout 10m bash -c 'npm test' ~ npm test
"""


def pairs(text: str) -> list[tuple[str, str]]:
    lines = (line.replace(r"\n", "\n").split(" ~ ") for line in text.strip().split("\n"))
    return [(one, other) for one, other in lines]


@pytest.mark.parametrize(("one", "other"), pairs(DIFFERENT))
def test_different_commands_are_told_apart(one: str, other: str) -> None:
    assert likeness(one, other) in (Likeness.OTHER, Likeness.NARROWER)
    assert not is_same(other, one) or one == "make"


@pytest.mark.parametrize(("one", "other"), pairs(SAME))
def test_the_same_check_is_the_same_however_it_is_run(one: str, other: str) -> None:
    assert is_same(one, other)


@pytest.mark.parametrize("command", ["", "   ", "&& ||", "$(", "'", '"', "<<", "|", "cd", "sudo"])
def test_what_is_no_command_is_the_same_as_nothing(command: str) -> None:
    assert not is_same(command, "npm test")
    assert not is_same("npm test", command)


@pytest.mark.parametrize(
    ("command", "is_forgiving"),
    [
        ("npm test", False), ("npm test | tail -3", True), ("npm test || true", True),
        ("npm test; echo done", True), ("npm test && echo done", False),
        ("cd app; npm test", False), ("set -o pipefail; npm test | tail", False),
        ("npm test | tee log", True), ("echo start; npm test", False),
    ],
)  # fmt: skip
def test_a_command_can_succeed_although_its_check_fails(
    command: str, *, is_forgiving: bool
) -> None:
    assert parsed(command).is_forgiving is is_forgiving


def test_a_command_that_changes_something_does_not_only_read() -> None:
    assert only_reads("cd /srv && git status && cat a | head -3")
    assert not only_reads("git commit -m x; git status")
    assert only_reads("sed -n 1,9p a.py | grep x")
    assert not only_reads("sed -i s/a/b/ a.py")
    assert not only_reads("find . -name x -delete")


# -- how sure it is --------------------------------------------------------------------------------


def ended(shell: Shell, home: Path, error: str = "Error: Cannot find module 'x'") -> list[str]:
    """Return what ended an error, how sure that is, and why it is a guess."""
    sync(shell.database, [home])
    item = shell.items("fix", error)[0]
    return [item["what"], item["certainty"], item["occurrences"][0]["why"]]


def failed(home: Path, command: str, error: str = "Error: Cannot find module 'x'") -> Transcript:
    talk = Transcript(home, SESSION, "/srv/demo")
    talk.bash(1, command, f"{error}\nnpm ERR! code ELIFECYCLE", is_error=True)
    return talk


def test_another_command_shows_no_end(shell: Shell, home: Path) -> None:
    talk = failed(home, "mise run lint")
    talk.bash(5, "mise run test:ci", "ok")
    assert ended(shell, home) == ["nothing shows that it was fixed", None, None]


def test_an_end_behind_a_filter_is_a_guess(shell: Shell, home: Path) -> None:
    talk = failed(home, "npm test")
    talk.tool(3, "Edit", file_path="/srv/demo/a.js", old_string="a", new_string="b")
    talk.bash(5, "npm test 2>&1 | head -5", "first lines")
    assert ended(shell, home) == ["edited a.js", "guess", "only a part of its output was shown"]
    assert shell("fix", "Error: Cannot find module 'x'") == 0
    assert "Found 1 time in 1 conversation; 1 fixed (a guess)." in shell.out
    assert "guess: edited a.js (1 time" in shell.out
    assert "a guess: only a part of its output was shown" in shell.out
    talk.bash(9, "npm test", "12 passed")
    assert ended(shell, home)[1:] == ["seen", None]


def test_a_check_that_fails_for_another_reason_is_a_guess(shell: Shell, home: Path) -> None:
    talk = failed(home, "npm test")
    talk.tool(3, "Edit", file_path="/srv/demo/a.js", old_string="a", new_string="b")
    talk.bash(5, "npm test", "TypeError: y is undefined", is_error=True)
    assert ended(shell, home) == ["edited a.js", "guess", "it still failed, with other errors"]


def test_a_wrapper_that_is_taken_off_is_seen_to_have_ended_it(shell: Shell, home: Path) -> None:
    talk = failed(home, "rtk bun run test", "error: unrecognized subcommand 'bun'")
    talk.bash(5, "bun run test", "ok")
    assert ended(shell, home, "error: unrecognized subcommand 'bun'") == [
        "ran it as bun run test", "seen", None,
    ]  # fmt: skip


def test_another_command_that_did_the_same_is_a_guess(shell: Shell, home: Path) -> None:
    talk = failed(home, "git push", "fatal: The current branch has no upstream branch.")
    talk.bash(5, "git push -u origin main", "done")
    assert ended(shell, home, "fatal: The current branch has no upstream branch.") == [
        "ran git push -u origin main instead", "guess", "another form of the command succeeded",
    ]  # fmt: skip


def test_a_part_of_a_check_shows_an_end_only_of_what_it_names(shell: Shell, home: Path) -> None:
    talk = failed(home, "go test ./...", "cmd/main.go:43:12: pattern ui: no files")
    talk.bash(5, "go test ./parser/...", "ok")
    error = "main.go:43:12: pattern ui: no files"
    assert ended(shell, home, error)[0] == "nothing shows that it was fixed"
    talk.bash(9, "go test ./cmd/main.go", "ok")
    assert ended(shell, home, error) == [
        "ran go test ./cmd/main.go instead", "guess", "only a part was checked again",
    ]  # fmt: skip


def test_the_file_that_an_error_names_stands_for_what_was_edited(shell: Shell, home: Path) -> None:
    talk = failed(home, "npm test", "src/pool.js:3:1 error: no semicolon")
    for second, name in ((3, "README.md"), (5, "src/pool.js"), (7, "src/whirlpool.js")):
        talk.tool(second, "Edit", file_path=f"/srv/demo/{name}", old_string="a", new_string="b")
    talk.bash(9, "npm test", "ok")
    assert ended(shell, home, "error: no semicolon") == ["edited pool.js", "seen", None]


def test_of_several_changes_that_it_does_not_name_which_one_is_a_guess(
    shell: Shell, home: Path
) -> None:
    talk = failed(home, "npm test")
    talk.tool(3, "Edit", file_path="/srv/demo/a.js", old_string="a", new_string="b")
    talk.tool(5, "Edit", file_path="/srv/demo/b.js", old_string="a", new_string="b")
    talk.bash(7, "git add -A && git commit -m x", "done")
    talk.bash(9, "npm test", "ok")
    assert ended(shell, home) == [
        "edited a.js, b.js", "guess",
        "several files were changed, and the error names none of them",
    ]  # fmt: skip


def test_a_test_that_names_itself_does_not_stand_for_what_was_edited(
    shell: Shell, home: Path
) -> None:
    talk = failed(home, "npm test", "pool.test.js:3: Error: 2 is not 3")
    talk.tool(3, "Edit", file_path="/srv/demo/pool.js", old_string="a", new_string="b")
    talk.tool(5, "Edit", file_path="/srv/demo/pool.test.js", old_string="a", new_string="b")
    talk.bash(9, "npm test", "ok")
    assert ended(shell, home, "Error: 2 is not 3") == [
        "edited pool.js, pool.test.js", "guess",
        "several files were changed, and the error names only a test",
    ]  # fmt: skip


def test_another_check_suggests_the_end_of_an_error_whose_file_was_edited(
    shell: Shell, home: Path
) -> None:
    error = "pool.go:12:3: undefined: basin"
    talk = failed(home, "go build ./...", error)
    talk.bash(3, "mise run lint", "ok")
    assert ended(shell, home, error)[0] == "nothing shows that it was fixed"
    talk.tool(5, "Edit", file_path="/srv/demo/pool.go", old_string="a", new_string="b")
    talk.bash(6, "git status", "M pool.go")
    talk.bash(7, "mise run lint", "tap.go:1:1: error: no comment", is_error=True)
    assert ended(shell, home, error)[0] == "nothing shows that it was fixed"
    talk.bash(9, "mise run lint", "ok")
    assert ended(shell, home, error) == ["edited pool.go", "guess", "another check succeeded"]


def test_a_rebase_that_goes_on_ended_its_conflict(shell: Shell, home: Path) -> None:
    error = "error: could not apply 2dd8eff6... a subject"
    talk = failed(home, "git rebase origin/main", error)
    talk.tool(3, "Edit", file_path="/srv/demo/pool.go", old_string="a", new_string="b")
    talk.bash(5, "git add pool.go && git rebase --continue", "Successfully rebased")
    assert ended(shell, home, error) == ["edited pool.go", "seen", None]


def test_a_command_that_writes_a_file_changes_something(shell: Shell, home: Path) -> None:
    talk = failed(home, "npm test")
    talk.bash(3, "echo hello > /tmp/a.txt; ls > /dev/null; cat a.js 2>/dev/null", "")
    talk.bash(5, "echo '}' >> a.js", "")
    talk.bash(9, "npm test", "ok")
    assert ended(shell, home) == ["ran echo } > a.js", "seen", None]


def test_what_ended_the_same_line_comes_before_what_is_newer(shell: Shell, home: Path) -> None:
    for session, name in ((SESSION, "pool"), (OTHER, "basin")):
        talk = Transcript(home, session, "/srv/demo")
        second = 0 if name == "pool" else 100
        talk.bash(second, "make lint", f"src/{name}.go:7:1: not checked (errcheck)", is_error=True)
        talk.tool(second + 2, "Edit", file_path=f"/srv/demo/src/{name}.go", old_string="a",
                  new_string="b")  # fmt: skip
        talk.bash(second + 4, "make lint", "ok")
    assert ended(shell, home, "src/pool.go:9:4: not checked (errcheck)")[0] == "edited pool.go"
    assert ended(shell, home, "src/basin.go:9:4: not checked (errcheck)")[0] == "edited basin.go"
    assert ended(shell, home, "src/tap.go:9:4: not checked (errcheck)")[0] == "edited basin.go"


def test_tags_around_an_error_are_no_part_of_it(shell: Shell, home: Path) -> None:
    talk = Transcript(home, SESSION, "/srv/demo")
    error, path = (
        "File has not been read yet. Read it first before writing to it.",
        "/srv/demo/a.py",
    )
    tagged = f"<tool_use_error>{error}</tool_use_error>"
    talk.tool(1, "Edit", tagged, is_error=True, file_path=path, old_string="a", new_string="b")
    talk.tool(3, "Read", "a", file_path=path)
    talk.tool(5, "Edit", file_path=path, old_string="a", new_string="b")
    for text in (error, tagged):
        assert ended(shell, home, text)[0] == "read the file first"
    assert shell.items("fix", error)[0]["occurrences"][0]["error"] == error


def test_a_change_by_a_command_is_not_taken_for_reading(shell: Shell, home: Path) -> None:
    talk = failed(home, "npm test | head -40")
    talk.bash(5, "sed -i s/x/y/ a.js", "")
    talk.bash(9, "npm test", "ok")
    assert ended(shell, home)[0] == "ran sed -i s/x/y/ a.js"


def test_a_call_with_other_arguments_is_not_the_same_again(shell: Shell, home: Path) -> None:
    talk = Transcript(home, SESSION, "/srv/demo")
    error = "Agent type 'simplifier' not found"
    talk.tool(1, "Task", error, is_error=True, description="Simplify", subagent_type="simplifier")
    talk.tool(5, "Task", "done", description="Simplify", subagent_type="code:simplifier")
    assert ended(shell, home, error) == [
        "called Task again with another subagent_type",
        "seen",
        None,
    ]


def test_an_edit_that_a_command_did_instead_is_a_guess(shell: Shell, home: Path) -> None:
    talk = Transcript(home, SESSION, "/srv/demo")
    error, path = "String to replace not found in file.", "/srv/demo/a.py"
    talk.tool(1, "Edit", error, is_error=True, file_path=path, old_string="a", new_string="b")
    talk.bash(5, f"cat -A {path}", "a")
    talk.bash(9, f"python3 -c \"open('{path}', 'w').write('b')\"", "")
    what, certainty, why = ended(shell, home, error)
    assert what.startswith("ran python3 -c open(")
    assert (certainty, why) == ("guess", "a command did it instead")


def test_a_credential_is_not_shown_because_its_command_was_cut(shell: Shell, home: Path) -> None:
    token = "ghp_" + "aB3dE5gH7jK9" * 3
    talk = failed(home, "npm test")
    talk.bash(5, f"curl -X POST -H 'Authorization: Bearer {token}' https://example.org", "ok")
    talk.bash(9, "npm test", "ok")
    sync(shell.database, [home])
    index = Index(Settings(shell.database))
    shown = json.dumps(Tools(index).call("fix", {"error": "Error: Cannot find module 'x'"}))
    index.close()
    assert "ran curl -X POST" in shown
    assert token[:9] not in shown


def test_what_a_command_printed_that_succeeded_is_no_error(shell: Shell, home: Path) -> None:
    Transcript(home, SESSION, "/srv/demo").bash(1, "bun run test", "error: Item 3 failed\n1 pass")
    sync(shell.database, [home])
    assert shell("fix", "error: Item 3 failed") == 1
    assert "1 command printed this line and succeeded." in shell.err


def test_a_text_without_words_or_a_terminal_is_one_clear_error(
    shell: Shell, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixed(home, SESSION, 10)
    sync(shell.database, [home])
    assert shell("fix", "12 / 34") == 2
    assert "does not say what went wrong" in shell.err
    assert shell("fix", "Exit code 1") == 2
    monkeypatch.setattr("assoc_ingest.terminal.is_terminal", lambda stream: True)
    assert shell("fix") == 2
    assert 'assoc-ingest fix "ERROR TEXT"' in shell.err
