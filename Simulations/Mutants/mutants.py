#!/usr/bin/env python3
"""Shows that each mutant is caught: builds a copy of the tree with all of them in, each behind a
switch that only the copy has, and runs its scenarios until a rule breaks.

A mutant is a file: what it does wrong, the scenarios that are tried, and pieces of source with what
stands in their place. MUTANT there asks whether this one is switched on.
"""

import argparse
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SWITCH = """import Glibc

/// The one breakage that this run is to have.
package enum Mutant {
  private static let name = getenv("SKEP_MUTANT").map { String(cString: $0) }

  package static func isOn(_ name: String) -> Bool { name == self.name }
}
"""


class Mutant:
    def __init__(self, path):
        self.name = path.stem
        text = path.read_text()
        self.says = text.splitlines()[0].lstrip("# ")
        self.scenarios = re.search(r"^scenarios (.*)$", text, re.M).group(1).split()
        self.pieces = re.findall(r"^in (\S+)\n<<<<\n(.*?)\n====\n(.*?)\n>>>>$", text, re.M | re.S)
        if not self.pieces:
            sys.exit(f"{path}: it changes nothing")

    def apply(self, tree):
        for file, old, new in self.pieces:
            path = tree / file
            text = path.read_text()
            if text.count(old) != 1:
                sys.exit(f"{self.name}: {file} has {text.count(old)} times:\n{old}")
            text = text.replace(old, new.replace("MUTANT", f'Mutant.isOn("{self.name}")'))
            if not re.search(r"^(public |package )?import Nostr$", text, re.M):
                text = "import Nostr\n" + text
            path.write_text(text)


def copy_tree(tree):
    """Copies what is under version control, and leaves alone what has not changed since."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True,
        capture_output=True, text=True).stdout.split("\n")
    wanted = {
        name for name in listed
        if name and (ROOT / name).is_file() and not name.startswith(("docs/", "Simulations/Mutants/"))
    }
    plain = {name: (ROOT / name).read_bytes() for name in wanted}
    fresh = tree.parent / "fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    for name, content in plain.items():
        (fresh / name).parent.mkdir(parents=True, exist_ok=True)
        (fresh / name).write_bytes(content)
    return fresh


def settle(fresh, tree):
    """Moves over what differs, so that a second build is a short one."""
    tree.mkdir(parents=True, exist_ok=True)
    kept = set()
    for path in fresh.rglob("*"):
        if not path.is_file():
            continue
        name = path.relative_to(fresh)
        kept.add(name)
        there = tree / name
        if there.is_file() and there.read_bytes() == path.read_bytes():
            continue
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, there)
        shutil.copymode(path, there)
    for path in list(tree.rglob("*")):
        if path.is_file() and path.relative_to(tree) not in kept and ".build" not in path.parts:
            path.unlink()
    shutil.rmtree(fresh)


def build(mutants, scratch, command):
    tree = scratch / "tree"
    fresh = copy_tree(tree)
    (fresh / "Sources/Nostr/Mutant.swift").write_text(SWITCH)
    for mutant in mutants:
        mutant.apply(fresh)
    settle(fresh, tree)
    done = subprocess.run(command, cwd=tree)
    if done.returncode:
        sys.exit("the mutants do not build")
    return tree


def run(program, mutant, scenario, seed, seconds):
    environment = dict(os.environ, SKEP_MUTANT=mutant)
    try:
        done = subprocess.run(
            [program, "run", scenario, "--seed", str(seed), "--json"], env=environment,
            capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return "the clock", f"no end in {seconds} s"
    if done.returncode == 0:
        return None
    rule = re.search(r"^broken: (.*) \((\w+)\)$", done.stderr, re.M)
    if rule:
        return rule.group(2), rule.group(1)
    if done.returncode < 0:
        return "a broken promise to itself", f"signal {-done.returncode}"
    sys.exit(f"{scenario} {seed}: {done.stderr}")


def hunt(program, mutant, first, seeds, seconds):
    """Seeds from `first` on, each through all scenarios, until one is caught."""
    for number in range(seeds):
        for scenario in mutant.scenarios:
            caught = run(program, mutant.name, scenario, first + number, seconds)
            if caught:
                return number + 1, scenario, *caught
    return None


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*", help="of mutants; all where none is named")
    options.add_argument("--seeds", type=int, default=12, help="tried at most in one hunt")
    options.add_argument("--hunts", type=int, default=3, help="each from other seeds on")
    options.add_argument("--seconds", type=int, default=120, help="that one world may take")
    options.add_argument("--scratch", default=str(ROOT / ".build-mutants"))
    options.add_argument("--program", help="built before, with the mutants in")
    options.add_argument("--check", action="store_true", help="only whether each still applies")
    options.add_argument("--debug", action="store_true", help="builds without optimisation")
    arguments = options.parse_args()
    mutants = [Mutant(path) for path in sorted(HERE.glob("*.mutant"))]
    scratch = pathlib.Path(arguments.scratch)
    if arguments.check:
        scratch.mkdir(parents=True, exist_ok=True)
        fresh = copy_tree(scratch / "tree")
        for mutant in mutants:
            mutant.apply(fresh)
        shutil.rmtree(fresh)
        return print(f"{len(mutants)} mutants apply")
    program = arguments.program
    if not program:
        kind = "debug" if arguments.debug else "release"
        swift = os.environ.get("SWIFT", "swift")
        tree = build(mutants, scratch, [swift, "build", "-c", kind, "--product", "skep-sim"])
        program = str(tree / ".build" / kind / "skep-sim")
    if arguments.names:
        mutants = [mutant for mutant in mutants if mutant.name in arguments.names]
    survivors = 0
    print("mutant | scenario | checker | seeds (median) | rule")
    print("---|---|---|---|---")
    for mutant in mutants:
        hunts = [
            hunt(program, mutant, 1 + 1000 * number, arguments.seeds, arguments.seconds)
            for number in range(arguments.hunts)
        ]
        caught = [found for found in hunts if found]
        if len(caught) < len(hunts):
            survivors += 1
            print(f"{mutant.name} | {' '.join(mutant.scenarios)} | NOT CAUGHT "
                  f"({len(caught)} of {len(hunts)}) | > {arguments.seeds} | {mutant.says}", flush=True)
            continue
        median = int(statistics.median(found[0] for found in caught))
        _, scenario, checker, rule = caught[0]
        print(f"{mutant.name} | {scenario} | {checker} | {median} | {rule[:100]}", flush=True)
    print(f"{len(mutants)} mutants, {len(mutants) - survivors} caught in every hunt, "
          f"{survivors} not")
    sys.exit(1 if survivors else 0)


main()
