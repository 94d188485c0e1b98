#!/usr/bin/python3
"""What the packages say about themselves is valid, agrees, and is all there.

META.json against the PGXN Meta Spec 1.0.0; Debian's files against the rest; the
packages for PyPI and npm by building them, as far as that needs no network.
(Debian's packages are built by scripts/package.)
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

from harness import Checks

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

checks = Checks()


def read(name):
    with open(os.path.join(TOP, name), encoding="utf-8") as file:
        return file.read()


def control(key):
    (value,) = re.findall(rf"^{key} = '?(.*?)'?$", read("bloomfilter.control"),
                          re.MULTILINE)
    return value


def semantic(version):
    """1.0 as 1.0.0"""
    return ".".join((version.split(".") + ["0", "0"])[:3])


VERSION = semantic(control("default_version"))

# -- PGXN

SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[A-Za-z][-\w]*)?")
LICENSES = {"agpl_3", "apache_1_1", "apache_2_0", "artistic_1", "artistic_2",
            "bsd", "freebsd", "gfdl_1_2", "gfdl_1_3", "gpl_1", "gpl_2", "gpl_3",
            "lgpl_2_1", "lgpl_3_0", "mit", "mozilla_1_0", "mozilla_1_1",
            "openssl", "perl_5", "postgresql", "qpl_1_0", "ssleay", "sun",
            "zlib", "open_source", "restricted", "unrestricted", "unknown"}
PHASES = {"configure", "build", "test", "runtime", "develop"}
RELATIONS = {"requires", "recommends", "suggests", "conflicts"}


def is_string(value):
    return isinstance(value, str) and value != ""


def is_strings(value):
    return (is_string(value) or isinstance(value, list) and value != [] and
            all(is_string(part) for part in value))


def is_term(value):
    return is_string(value) and len(value) >= 2 and not re.search(r"[\s/\\\x00-\x1f]", value)


def is_tags(value):
    return isinstance(value, list) and value != [] and all(
        is_string(tag) and len(tag) <= 255 and not re.search(r"[/\\\x00-\x1f]", tag)
        for tag in value)


def is_version(value):
    return is_string(value) and SEMVER.fullmatch(value) is not None


def is_range(value):
    """0, a version, or comparisons with versions"""
    return value == 0 or is_string(value) and all(
        part == "0" or is_version(re.sub(r"^\s*([<>]=?|[!=]=)?\s*", "", part).strip())
        for part in value.split(","))


def is_license(value):
    if isinstance(value, dict):
        return value != {} and all(is_string(url) and "://" in url
                                   for url in value.values())
    return is_strings(value) and set([value] if isinstance(value, str) else value) <= LICENSES


def is_provides(value):
    return isinstance(value, dict) and value != {} and all(
        is_term(name) and isinstance(about, dict) and
        is_string(about.get("file")) and is_version(about.get("version")) and
        all(is_string(text) for text in about.values()) and
        set(about) <= {"file", "version", "abstract", "docfile"}
        for name, about in value.items())


def is_prereqs(value):
    return isinstance(value, dict) and value != {} and all(
        phase in PHASES and isinstance(relations, dict) and relations != {} and
        all(relation in RELATIONS and isinstance(names, dict) and
            all(is_term(name) and is_range(version)
                for name, version in names.items())
            for relation, names in relations.items())
        for phase, relations in value.items())


def is_spec(value):
    return (isinstance(value, dict) and value.get("version") == "1.0.0" and
            value.get("url", "https://pgxn.org/meta/spec.txt") in
            ("https://pgxn.org/meta/spec.txt", "http://pgxn.org/meta/spec.txt") and
            set(value) <= {"version", "url"})


REQUIRED = {"name": is_term, "version": is_version, "abstract": is_string,
            "maintainer": is_strings, "license": is_license,
            "provides": is_provides, "meta-spec": is_spec}
OPTIONAL = {"description": is_string, "generated_by": is_string,
            "tags": is_tags, "prereqs": is_prereqs,
            "release_status": lambda value: value in ("stable", "testing", "unstable"),
            "no_index": lambda value: isinstance(value, dict),
            "resources": lambda value: isinstance(value, dict)}


def faults(meta):
    """What the specification would say to it."""
    found = [f"no {key}" for key in REQUIRED if key not in meta]
    for key, value in meta.items():
        valid = REQUIRED.get(key) or OPTIONAL.get(key)
        if valid is None:
            if not key.lower().startswith("x_"):
                found.append(f"unknown key {key}")
        elif not valid(value):
            found.append(f"{key}: {value}")
    return found


def pgxn():
    meta = json.loads(read("META.json"))
    checks.equal(faults(meta), [], "META.json: faults")

    # would it find any?
    for key in REQUIRED:
        checks.equal(faults({k: v for k, v in meta.items() if k != key}),
                     [f"no {key}"], f"META.json without {key}")
    for key, wrong in {
        "name": "bloom filter", "version": "1.0", "license": "postgres",
        "maintainer": [], "tags": ["a/b"], "release_status": "unreleased",
        "provides": {"bloomfilter": {"file": "bloomfilter--1.0.sql"}},
        "prereqs": {"runtime": {"requires": {"PostgreSQL": "15"}}},
        "meta-spec": {"version": "2.0.0"}, "homepage": "x",
    }.items():
        checks.equal(len(faults({**meta, key: wrong})), 1,
                     f"META.json with {key} = {wrong}: faults")

    checks.equal(meta["version"], VERSION, "META.json: version")
    checks.equal(list(meta["provides"]), ["bloomfilter"], "META.json: provides")
    about = meta["provides"]["bloomfilter"]
    checks.equal(about["version"], VERSION, "META.json: extension's version")
    checks.equal(about["file"], f"bloomfilter--{control('default_version')}.sql",
                 "META.json: extension's script")
    for name in (about["file"], about["docfile"]):
        checks.check(os.path.isfile(os.path.join(TOP, name)), f"META.json: {name} is there")


# -- Debian

def debian():
    changelog = read("debian/changelog").splitlines()[0]
    found = re.fullmatch(r"(\S+) \((\S+)-\d+\) \w+; urgency=\w+", changelog)
    checks.equal(found and found.group(2), VERSION, "debian/changelog: version")
    source = re.search(r"^Source: (.*)$", read("debian/control"), re.MULTILINE)
    checks.equal(found and found.group(1), source and source.group(1),
                 "debian/changelog: source")

    template, filled = read("debian/control.in"), read("debian/control")
    versions = re.findall(r"^Package: postgresql-(\d+)-bloomfilter$", filled, re.MULTILINE)
    head, _, package = template.partition("\n\n")
    checks.check(versions != [] and filled.strip() == "\n\n".join(
        [head.strip()] + [package.strip().replace("PGVERSION", version)
                          for version in versions]),
                 f"debian/control: as control.in makes it, for {' '.join(versions)}")

    checks.check(" ".join(read("LICENSE").split()).partition("Permission")[2] in
                 " ".join(read("debian/copyright").replace("\n .", "\n").split()),
                 "debian/copyright has the license")


# -- the clients

def copy_of(client, directory):
    """What is there of a client, without what builds and tests leave behind."""
    return shutil.copytree(
        os.path.join(TOP, "clients", client), os.path.join(directory, client),
        ignore=shutil.ignore_patterns("node_modules", "__pycache__", "build", "dist", "*.egg-info"))


def files_under(directory):
    return sorted(os.path.relpath(os.path.join(at, name), directory)
                  for at, _, names in os.walk(directory) for name in names)


def run(command, directory, **environment):
    done = subprocess.run(command, cwd=directory, env={**os.environ, **environment},
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: {done.stdout}{done.stderr}")
    return done.stdout


def python_client():
    with tempfile.TemporaryDirectory() as directory:
        source = copy_of("python", directory)
        package = [name for name in files_under(source)
                   if name.startswith("bloomfilter_pg/")]
        built = run([sys.executable, "-c",
                     "from setuptools import build_meta\n"
                     "print(build_meta.build_wheel('.'), build_meta.build_sdist('.'))"],
                    source).split()
        checks.equal(built[-2:], [f"bloomfilter_pg-{VERSION}-py3-none-any.whl",
                                  f"bloomfilter-pg-{VERSION}.tar.gz"],
                     "clients/python: wheel and sdist")
        wheel = os.path.join(source, built[-2])
        with zipfile.ZipFile(wheel) as file:
            names = file.namelist()
            (info,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
            about = file.read(f"{info}/METADATA").decode()
            (license_file,) = [name for name in names if name.endswith("/LICENSE")]
            text = file.read(license_file).decode()
        checks.equal(sorted(name for name in names if ".dist-info/" not in name),
                     package, "the wheel's files")
        checks.check(text == read("LICENSE"), "the wheel's license is the LICENSE")
        for line in ("Name: bloomfilter-pg", f"Version: {VERSION}",
                     "Classifier: License :: OSI Approved :: PostgreSQL License",
                     "Requires-Dist: xxhash", "Description-Content-Type: text/markdown"):
            checks.check(re.search(rf"^{re.escape(line)}", about, re.MULTILINE) is not None,
                         f"the wheel's metadata: {line}")
        answer = run([sys.executable, "-c",
                      "from bloomfilter_pg import BloomFilter\n"
                      "f = BloomFilter(100)\n"
                      "f.add('there')\n"
                      "print('there' in f, 'not there' in f)"],
                     directory, PYTHONPATH=wheel)
        checks.equal(answer.strip(), "True False", "the wheel works: 'there', 'not there'")


def javascript_client():
    about = json.loads(read("clients/javascript/package.json"))
    lock = json.loads(read("clients/javascript/package-lock.json"))
    checks.equal(about["version"], VERSION, "package.json: version")
    checks.equal((lock["version"], lock["packages"][""]["version"]), (VERSION, VERSION),
                 "package-lock.json: versions")
    checks.equal(lock["packages"][""].get("dependencies"), about["dependencies"],
                 "package-lock.json: dependencies")
    checks.equal(about["license"], "PostgreSQL", "package.json: license")
    with tempfile.TemporaryDirectory() as directory:
        source = copy_of("javascript", directory)
        (packed,) = json.loads(run(["npm", "pack", "--dry-run", "--json", "--ignore-scripts"],
                                   source, HOME=directory, npm_config_update_notifier="false"))
        names = [file["path"] for file in packed["files"]]
        checks.equal(packed["filename"], f"bloomfilter-pg-{VERSION}.tgz", "npm: package")
        checks.equal(sorted(names), sorted(
            ["LICENSE", "README.md", "package.json"] +
            [name for name in files_under(source) if name.startswith("src/")]), "npm: files")
        targets = [about["types"], *about["exports"]["."].values()]
        checks.equal([name for name in targets if name.removeprefix("./") not in names], [],
                     "npm: entry points that are missing")
    checks.check(read("clients/javascript/LICENSE") == read("LICENSE"),
                 "npm: the license is the LICENSE")


def changelog():
    heading = re.search(r"^## (\d+\.\d+\.\d+)\b", read("CHANGELOG.md"), re.MULTILINE)
    checks.equal(heading and heading.group(1), VERSION, "CHANGELOG.md: newest version")


def main():
    for part in (pgxn, debian, python_client, javascript_client, changelog):
        checks.part(part)
    checks.close()


if __name__ == "__main__":
    main()
