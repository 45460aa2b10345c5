#!/usr/bin/env bats
# cmd/REFERENCE.md and the manual page, which `ddpbench help --markdown` and `--man` print.
# shellcheck disable=SC2154 # root, ddpbench, status, output: helpers.bash, bats
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    "$ddpbench" help --markdown >page.md
}

@test "cmd/REFERENCE.md is what the program prints; make reference writes it" {
    diff -u "$root/cmd/REFERENCE.md" page.md
}

@test "the reference has every command, option, environment variable and exit code" {
    for command in $("$ddpbench" help | sed -nE 's/^  ([a-z-]+)  .*/\1/p' | grep -v '^ddpbench'); do
        sed -n "/^### $command\$/,/^##/p" page.md >section
        [ -s section ]
        for option in $("$ddpbench" "$command" --help | grep -oE '^ +(-[a-zA-Z], )?--[a-z0-9-]+' | sed 's/.*--/--/' | grep -v '^--benchmark'); do
            grep -qE -- "(\`|[ ,])${option}[ \`,.]" section || grep -q -- "^${option}[,.]" section ||
                { echo "$command: no $option"; false; }
        done
    done
    sed -n '/^## Environment/,/^## Exit/p' page.md >section
    for variable in $(grep -o '"DDPBENCH_[A-Z_]*"' "$root/lib/base/conf.c" | tr -d '"'); do
        [ "$variable" = DDPBENCH_ ] || grep -q "^- \`$variable\`: " section
    done
    diff <(sed -n '/^## Exit/,/^## JSON/p' page.md | sed -nE 's/^- `([0-9]+)`.*/\1/p') \
        <("$ddpbench" help exit-codes | sed -nE 's/^ *([0-9]+)  .*/\1/p')
}

@test "the reference has every key of the schema once, with its own description" {
    "$PYTHON" - "$root/results/schema/ddpbench-1.schema.json" <<'PY'
import json, re, sys
schema = json.load(open(sys.argv[1]))
text = open("page.md").read().split("\n## JSON keys\n")[1]
entries = re.split(r"\n- ", text)[1:]
described = {}
for entry in entries:
    path, rest = re.match(r"`([^`]+)`: (.*)", entry, re.S).groups()
    assert path not in described, path
    described[path] = " ".join(rest.replace("\\", "").split())
count, done = 0, set()
def walk(node, path):
    global count
    if "$ref" in node:
        name = node["$ref"].split("/")[-1]
        if name not in done:
            done.add(name)
            walk(schema["$defs"][name], path)
    for key, child in node.get("properties", {}).items():
        below = f"{path}.{key}" if path else key
        assert below in described, below
        count += 1
        if "description" in child: # beside a reference, it counts before the description of the definition
            assert " ".join(child["description"].split()) in described[below], (below, described[below])
        walk(child, below)
    if isinstance(node.get("items"), dict): walk(node["items"], path + "[]")
    for each in node.get("anyOf", []): walk(each, path)
walk(schema, "")
assert count == len(described) > 250, (count, len(described))
assert "verdict.base" in described["verdict.new"], described["verdict.new"]
PY
}

@test "the reference and the manual page: one at a time, alone, and a full disk is an error" {
    refused 64 --man --markdown -- help --man --markdown
    refused 64 "'list'" -- help --markdown list
    for format in --man --markdown; do
        run -74 bash -c '"$1" help "$2" >/dev/full' - "$ddpbench" "$format"
        says stdout
    done
}
