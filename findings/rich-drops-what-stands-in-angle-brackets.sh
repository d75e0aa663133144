#!/usr/bin/env bash
# rich 15.0.0 with markdown-it-py 4.3.0 (PyPI); marked 18.2.1 with marked-terminal 7.3.1 (npm, Node 22.23.3).
#
# `rich.markdown.Markdown` is a common way to show a model's answer in a terminal. It parses HTML and then prints none of it. In a paragraph the
# part in angle brackets vanishes: `Vec<String>` is shown as `Vec`, and `git checkout <branch>` as `git checkout`. A paragraph whose first
# line is a tag, such as `<answer>`, vanishes whole, with all its words up to the next empty line. No error and no gap says so; what stands in
# backticks stays. marked with marked-terminal shows all of it. A program that shows answers has to take the rules `html_inline` and
# `html_block` out of the parser: then rich shows this as text too.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check rich==15.0.0 markdown-it-py==4.3.0
npm install --silent --no-audit --no-fund node@22.23.3 marked@18.2.1 marked-terminal@7.3.1
cat > answer.md <<'MD'
Return a Vec<String> from `Map<K, V>`, then run git checkout <branch>.

<answer>
The port is 8080.
</answer>

That is all.
MD
cat > show.py <<'PY'
import pathlib, sys

import markdown_it
from rich.console import Console
from rich.markdown import Markdown

text = pathlib.Path("answer.md").read_text()
shown = Markdown(text)
if "without" in sys.argv:
    shown.parsed = markdown_it.MarkdownIt().enable("table").enable("strikethrough").disable(["html_inline", "html_block"]).parse(text)
Console(width=100, color_system=None).print(shown)
PY
cat > show.mjs <<'JS'
import { readFileSync } from "node:fs";
import { marked } from "marked";
import { markedTerminal } from "marked-terminal";

console.log(marked.use(markedTerminal()).parse(readFileSync("answer.md", "utf8")));
JS
lines() { sed 's/ *$//' | grep .; }
seen=$(echo '# rich'; venv/bin/python show.py | lines; echo '# rich, without the two rules'; venv/bin/python show.py without | lines
  echo '# marked-terminal'; NO_COLOR=1 FORCE_COLOR=0 node_modules/.bin/node show.mjs | lines)
echo "$seen"
[ "$seen" = '# rich
Return a Vec from Map<K, V>, then run git checkout .
That is all.
# rich, without the two rules
Return a Vec<String> from Map<K, V>, then run git checkout <branch>.
<answer> The port is 8080. </answer>
That is all.
# marked-terminal
Return a Vec<String> from Map<K, V>, then run git checkout <branch>.
<answer>
The port is 8080.
</answer>That is all.' ]
