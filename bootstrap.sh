# Shared by ./paceline, ./check and ./docs-site, which source it from the root of the clone: a virtual environment in .venv
# with Paceline installed from these sources, and builds with cargo's dev profile. Nothing outside the clone is changed.

stop() {
    printf '%s: %s\n' "${0##*/}" "$1" >&2
    exit 1
}

# Prints the first Python of at least 3.11.
find_python() {
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    stop "Python 3.11 or newer is needed, and none is on the PATH."
}

# What is built and installed, as one number; the folder counts, because the installed command names it.
fingerprint() {
    checksum crates python papers suites leagues examples kernel-cc tools web/presets Cargo.toml Cargo.lock pyproject.toml
}

# checksum PATH...: the files below, and this folder, as one number.
checksum() {
    {
        printf '%s\n' "$PWD"
        find "$@" -type f \
            ! -path '*/__pycache__/*' ! -name '*.so' -exec cksum {} + 2>/dev/null | LC_ALL=C sort
    } | cksum
}

find_cargo() {
    command -v cargo >/dev/null 2>&1 || PATH="$PATH:$HOME/.cargo/bin"
    command -v cargo >/dev/null 2>&1 || stop "cargo is needed to build the simulator: install Rust 1.88 or newer."
}

# Makes an empty .venv if there is none.
make_venv() {
    .venv/bin/python -m pip --version >/dev/null 2>&1 && return
    python=$(find_python) || exit 1
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        stop "$python has no venv module: install it (on Debian and Ubuntu the package python3-venv)."
    "$python" -m venv --clear .venv || stop "the virtual environment .venv could not be made."
}

# Builds the playground's page into python/paceline, where the machine can; all but `paceline explore` do without it, and
# that says what is missing.
build_playground() {
    [ -x web/build ] && command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 || return 0
    web/build >&2 && return
    [ -f python/paceline/playground.html ] || return 0
    echo "The playground's page could not be built anew: this is one of older sources." >&2
}

# libraries [dev|site]: puts into .venv what Paceline needs, but not Paceline; with `dev` also what its tests and tools need,
# the site's among them; with `site` what the site alone is built with.
libraries() {
    kind=${1:-run}
    wanted=$(cksum <pyproject.toml)
    [ "$(cat .venv/libraries-dev 2>/dev/null)" = "$wanted" ] && return
    [ "$(cat ".venv/libraries-$kind" 2>/dev/null)" = "$wanted" ] && return
    echo "Installing the libraries into .venv ..." >&2
    .venv/bin/python - "$kind" >".venv/libraries-$kind.txt" <<'EOF' &&
import sys, tomllib

with open("pyproject.toml", "rb") as file:
    settings = tomllib.load(file)
run, groups = settings["project"]["dependencies"], settings["dependency-groups"]
test = [one for one in groups["test"] if isinstance(one, str)]
print(*{"run": run, "dev": run + test + groups["docs"], "site": groups["docs"]}[sys.argv[1]], sep="\n")
EOF
        .venv/bin/python -m pip install --disable-pip-version-check --quiet -r ".venv/libraries-$kind.txt" >&2 ||
        stop "the libraries could not be installed; what pip said stands above."
    printf '%s\n' "$wanted" >".venv/libraries-$kind"
}

# Makes .venv hold a release of these sources; returns at once if it does.
install() {
    now=$(fingerprint)
    [ "$(cat .venv/installed-release 2>/dev/null)" = "$now" ] && return

    find_cargo
    make_venv
    quiet='--quiet'
    [ -f .venv/installed-release ] || quiet=''
    echo "Building Paceline into .venv (some minutes the first time) ..." >&2
    rm -rf .venv/installed-release .venv/wheel
    # the network and the compiler side by side
    libraries &
    aside=$!
    .venv/bin/python -m pip wheel --disable-pip-version-check $quiet --no-deps --wheel-dir .venv/wheel . >&2
    code=$?
    wait "$aside" || exit 1
    [ "$code" -eq 0 ] || stop "the build failed; what pip and cargo said stands above."
    .venv/bin/python -m pip install --disable-pip-version-check --quiet --no-deps --force-reinstall .venv/wheel/*.whl >&2 ||
        stop "what was built could not be installed; what pip said stands above."
    printf '%s\n' "$now" >.venv/installed-release
}

# Makes .venv hold what the documentation's site is built with, and a Paceline of these sources, unless the dev build is one.
site_tools() {
    developed=$(target_folder)/dev-python
    if [ "$(cat "$developed/built" 2>/dev/null)" = "$(checksum crates Cargo.toml Cargo.lock)" ]; then
        export PYTHONPATH="$developed${PYTHONPATH:+:$PYTHONPATH}"
    else
        install
    fi
    libraries site
}

# Prints cargo's target folder.
target_folder() {
    mkdir -p "${CARGO_TARGET_DIR:-target}" && CDPATH='' cd -- "${CARGO_TARGET_DIR:-target}" && pwd
}

# built ARGS...: cargo build with cargo's dev profile, then the package of this clone around the simulator that it made,
# in target/dev-python. Of .venv only the libraries are used: a Paceline in it, a release, is neither asked for nor touched.
# Every call builds the whole workspace, or a part with an example: only then does cargo give all crates the features that
# they have in tests, and a module, a test and an example share what lies below them (tests/test_builds.py).
built() {
    PYO3_PYTHON="$PWD/.venv/bin/python" cargo build --quiet --locked --workspace "$@" >&2 ||
        { echo "the build failed; what cargo said stands above." >&2 && return 1; }
    target=$(target_folder) || return 1
    package="$target/dev-python/paceline"
    # without what is no longer there
    mkdir -p "$package" && find -L "$package" -maxdepth 1 -type l -exec rm {} + || return 1
    ln -sf "$PWD"/python/paceline/* "$package" || return 1
    # the library as the system names it; Python wants it under this name
    for library in "$target/debug/lib_core.so" "$target/debug/lib_core.dylib"; do
        [ -f "$library" ] && ln -sf "$library" "$package/_core.abi3.so"
    done
    # the command, for who starts a program
    mkdir -p "$target/dev-python/bin" || return 1
    cat >"$target/dev-python/bin/paceline.part" <<EOF && chmod +x "$target/dev-python/bin/paceline.part" || return 1
#!/bin/sh
PYTHONPATH='$target/dev-python' exec '$PWD/.venv/bin/python' -m paceline "\$@"
EOF
    mv "$target/dev-python/bin/paceline.part" "$target/dev-python/bin/paceline" || return 1
    checksum crates Cargo.toml Cargo.lock >"$target/dev-python/built"
}

# All of the workspace: libraries, the module, tests, examples.
build_all() {
    built --lib --bins --examples --tests
}

# Prints a folder for PYTHONPATH that holds the dev build.
develop() {
    find_cargo
    make_venv
    libraries
    built --lib --example simulate || exit 1
    printf '%s\n' "$target/dev-python"
}
