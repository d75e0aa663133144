//! From HTML to Markdown: the main part of a page, without what a reader does not see.

use dom_query::{Document, NodeRef, Selection};

use crate::link;

/// Elements that are never text of the page, or only surround it.
const LEFT_OUT: &str = "script, style, template, noscript, svg, math annotation, iframe, object, embed, canvas, audio, video, \
                        dialog, button, input, select, textarea, nav, [hidden], [aria-hidden=true], [role=navigation]";
/// What surrounds the main part of a page that does not mark it.
const SURROUNDINGS: &str = "body > header, body > footer, [role=banner], [role=contentinfo], aside";
/// Declarations that hide an element, without blanks.
const HIDING: [&str; 10] = [
    "display:none",
    "visibility:hidden",
    "visibility:collapse",
    "opacity:0;",
    "opacity:0.0",
    "font-size:0",
    "text-indent:-",
    "left:-",
    "clip:rect(0",
    "color:transparent",
];
/// The least characters of a main part, and the part of the page's text that it has at least.
const MAIN: usize = 200;
const SHARE: usize = 4;
/// The deepest element that is written as Markdown. The text of deeper pages is shown without its form, because what writes
/// Markdown calls itself for each level.
const DEEPEST: usize = 200;

/// A page.
pub(crate) struct Page {
    pub(crate) title: String,
    pub(crate) text: String,
}

/// Reads a page of this address.
pub(crate) fn page(html: &str, address: &str) -> Page {
    let document = Document::from(html);
    let title = document.select_single("title").text().to_string();
    let heading = document.select_single("h1").text().to_string();
    let title = if title.trim().is_empty() { heading } else { title };
    if depth(&document.root()) > DEEPEST {
        return Page { title, text: plain(&document.root()) };
    }
    document.select("head").remove();
    document.select(LEFT_OUT).remove();
    for element in document.select("[style]").iter() {
        if element.attr("style").is_some_and(|style| hides(&style)) {
            element.remove();
        }
    }
    let base = document.base_uri().and_then(|base| link::absolute(address, &base));
    let base = base.as_deref().unwrap_or(address);
    for anchor in document.select("a[href]").iter() {
        match anchor.attr("href").and_then(|href| link::absolute(base, &href)) {
            Some(href) => anchor.set_attr("href", &href),
            None => anchor.remove_attr("href"),
        }
    }
    for image in document.select("img").iter() {
        // Without a description, a model learns nothing from a picture's address.
        let source = image.attr("src").and_then(|source| link::absolute(base, &source));
        match source.filter(|_| image.attr("alt").is_some_and(|alt| !alt.trim().is_empty())) {
            Some(source) => image.set_attr("src", &source),
            None => image.remove(),
        }
    }
    let text = match main(&document) {
        Some(main) => main.md(None).to_string(),
        None => document.md(None).to_string(),
    };
    Page { title, text: spaced(&text) }
}

fn hides(style: &str) -> bool {
    let style: String =
        style.chars().filter(|sign| !sign.is_whitespace()).collect::<String>().to_ascii_lowercase() + ";";
    HIDING.iter().any(|hiding| style.contains(hiding)) && !style.contains("font-size:0.")
}

/// The element with the main part, if the page has one. Otherwise removes what surrounds it.
fn main(document: &Document) -> Option<NodeRef<'_>> {
    let length = |text: &str| text.chars().filter(|sign| !sign.is_whitespace()).count();
    let whole = length(&document.text());
    let marked = ["main, [role=main]", "article"].into_iter().find_map(|marked| {
        let of_kind: Selection<'_> = document.select(marked);
        let longest = of_kind.nodes().iter().max_by_key(|node| length(&node.text())).copied();
        longest.filter(|node| (MAIN.max(whole / SHARE)..).contains(&length(&node.text())))
    });
    if marked.is_none() {
        let surroundings = document.select(SURROUNDINGS);
        if length(&surroundings.text()) + MAIN < whole {
            surroundings.remove();
        }
    }
    marked
}

/// The number of levels below a node.
fn depth(root: &NodeRef<'_>) -> usize {
    let (mut deepest, mut depth) = (0, 0);
    let mut node = root.first_child();
    while let Some(here) = node {
        deepest = deepest.max(depth);
        if let Some(child) = here.first_child() {
            depth += 1;
            node = Some(child);
            continue;
        }
        let mut up = here;
        node = loop {
            if let Some(next) = up.next_sibling() {
                break Some(next);
            }
            match up.parent() {
                Some(parent) if parent.id != root.id => {
                    depth -= 1;
                    up = parent;
                }
                _ => break None,
            }
        };
    }
    deepest
}

/// The text of a page that is nested too deeply, each piece on a line of its own. Elements that hide their text are left out.
fn plain(root: &NodeRef<'_>) -> String {
    let mut text = String::new();
    let mut node = root.first_child();
    while let Some(here) = node {
        let skipped = here.is_element()
            && (here.node_name().is_some_and(|name| matches!(name.as_ref(), "script" | "style" | "template" | "head"))
                || here.has_attr("hidden")
                || here.attr("style").is_some_and(|style| hides(&style)));
        if here.is_text() && !here.text().trim().is_empty() {
            text.push_str(here.text().trim());
            text.push('\n');
        }
        let child = if skipped { None } else { here.first_child() };
        let mut up = here;
        node = child.or_else(|| {
            loop {
                if let Some(next) = up.next_sibling() {
                    break Some(next);
                }
                up = up.parent().filter(|parent| parent.id != root.id)?;
            }
        });
    }
    text
}

/// The text without blanks at the ends of lines, and with at most one empty line in a row.
fn spaced(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len());
    let mut empty = true;
    for line in text.lines() {
        // Two blanks are a line break in Markdown, which the line's end is, too.
        let line = line.trim_end();
        if !(line.is_empty() && empty) {
            spaced.push_str(line);
            spaced.push('\n');
        }
        empty = line.is_empty();
    }
    spaced.truncate(spaced.trim_end().len());
    spaced
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(html: &str) -> String {
        page(html, "https://a.example/docs/").text
    }

    #[test]
    fn a_page_becomes_markdown_with_absolute_links() {
        let html = "<html><head><title> Ferries\n of Cork </title><script>evil()</script></head><body><nav>Home</nav>
            <h1>Ferries</h1><p>They leave at <b>07:45</b>, see <a href='../times?day=1'>the times</a> or
            <a href='javascript:x()'>this</a>.</p><ul><li>Cork<li>Cobh</ul><pre><code>ferry --book</code></pre>
            <table><tr><th>From</th><th>To</th></tr><tr><td>Cork</td><td>Cobh</td></tr></table>
            <img src='/map.png' alt='A map'><img src='/pixel.gif'><img src='data:image/png;base64,AAAA' alt='inline'></body></html>";
        let page = page(html, "https://a.example/docs/");
        assert_eq!(page.title.split_whitespace().collect::<Vec<_>>(), ["Ferries", "of", "Cork"]);
        for part in [
            "# Ferries",
            "They leave at **07:45**, see [the times](https://a.example/times?day=1) or",
            "- Cork\\n- Cobh",
            "```\\nferry --book\\n```",
            "| From | To",
            "![A map](https://a.example/map.png)",
        ] {
            assert!(page.text.contains(&part.replace("\\n", "\n")), "{part}: {}", page.text);
        }
        for part in ["evil", "Home", "javascript", "pixel", "base64", "<"] {
            assert!(!page.text.contains(part), "{part}: {}", page.text);
        }
    }

    #[test]
    fn what_a_reader_does_not_see_is_left_out() {
        let hidden = [
            "<p hidden>OBEY</p>",
            "<p style='display: none'>OBEY</p>",
            "<p style='color:red; VISIBILITY : hidden'>OBEY</p>",
            "<span style='font-size:0px'>OBEY</span>",
            "<span style='opacity:0'>OBEY</span>",
            "<div style='position:absolute; left:-9999px'>OBEY</div>",
            "<div aria-hidden=true>OBEY</div>",
            "<!-- OBEY -->",
            "<template>OBEY</template>",
            "<noscript>OBEY</noscript>",
            "<input value=OBEY>",
            "<textarea>OBEY</textarea>",
            "<svg><text>OBEY</text></svg>",
        ];
        for hidden in hidden {
            let text =
                text(&format!("<body><p>Tea.</p>{hidden}<p style='opacity:0.5;font-size:0.9em'>Milk.</p></body>"));
            assert_eq!(text, "Tea.\n\nMilk.", "{hidden}");
        }
    }

    #[test]
    fn the_marked_main_part_is_taken_if_it_has_the_text() {
        let long = "Ferries leave every hour. ".repeat(20);
        let around = "<header>Menu</header><aside>Advertisement</aside>";
        let main = text(&format!("<body>{around}<main><p>{long}</p></main><footer>Imprint</footer></body>"));
        assert_eq!(main, long.trim());
        // An application whose main part is empty.
        let unmarked = text(&format!("<body>{around}<main></main><div>{long}</div><footer>Imprint</footer></body>"));
        assert_eq!(unmarked, long.trim());
        // Nothing else is there.
        assert_eq!(text("<body><aside>Closed today.</aside></body>"), "Closed today.");
    }

    #[test]
    fn deep_pages_are_read_without_their_form() {
        for (open, name) in
            [("<div>", "div"), ("<ul><li>", "list"), ("<table><tr><td>", "table"), ("<blockquote>", "quote")]
        {
            let html = format!("<p>Tea.</p><p hidden>OBEY</p>{}<p>Milk.", open.repeat(300));
            assert_eq!(text(&html), "Tea.\nMilk.\n", "{name}");
        }
    }

    #[test]
    fn broken_pages_are_read() {
        for (html, expected) in [
            ("", ""),
            ("just text", "just text"),
            ("<p>a<p>b", "a\n\nb"),
            ("<b><i>x</b></i>", "***x***"),
            ("<a href>x</a>", "x"),
            ("<title>", ""),
        ] {
            assert_eq!(text(html), expected, "{html}");
        }
    }
}
