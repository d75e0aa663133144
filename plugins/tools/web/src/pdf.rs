//! The text of a PDF file: what its pages show, in lines and paragraphs, by the places of the glyphs.
//!
//! Files come from strangers. The parser has limits for nesting and for what a stream unpacks to, this code has limits for pages
//! and operations, and the host ends a call that still takes too long or too much memory.

use std::collections::{BTreeMap, HashMap};

use lopdf::content::Content;
use lopdf::{Dictionary, Document, Encoding, LoadOptions, Object};

/// Most bytes of an unpacked stream of the file's structure, and of the content of a page.
const UNPACKED: usize = 32 << 20;
const CONTENT: usize = 16 << 20;
/// Most pages, operations of all pages together, and bytes of text.
const PAGES: usize = 2_000;
const OPERATIONS: usize = if cfg!(test) { 20_000 } else { 2_000_000 };
const TEXT: usize = 4 << 20;
/// Most saved states of a page.
const STATES: usize = 64;

/// A file.
#[derive(Debug)]
pub(crate) struct Pdf {
    pub(crate) title: String,
    pub(crate) pages: usize,
    pub(crate) text: String,
    /// Whether a limit ended the reading.
    pub(crate) is_cut: bool,
}

/// Reads a file. The error is for the model.
pub(crate) fn read(bytes: &[u8]) -> Result<Pdf, String> {
    let options = LoadOptions { max_decompressed_size: Some(UNPACKED), ..LoadOptions::default() };
    let document = Document::load_mem_with_options(bytes, options)
        .map_err(|error| format!("the PDF file cannot be read: {error}"))?;
    if document.is_encrypted() {
        return Err("the PDF file is encrypted with a password".to_owned());
    }
    let pages: Vec<_> = document.page_iter().take(PAGES + 1).collect();
    let mut writer = Writer { text: String::new(), last: None, operations: OPERATIONS };
    let mut is_cut = pages.len() > PAGES;
    for (number, page) in pages.iter().take(PAGES).enumerate() {
        if writer.operations == 0 || writer.text.len() > TEXT {
            is_cut = true;
            break;
        }
        if number > 0 {
            writer.paragraph();
        }
        // A page that cannot be read leaves the others.
        let Ok(content) = document.get_page_content_with_limit(*page, CONTENT) else { continue };
        let fonts = document.get_page_fonts(*page).unwrap_or_default();
        let fonts = fonts.into_iter().map(|(name, font)| (name, Font::of(&document, font))).collect();
        show(&content, &fonts, &mut writer);
    }
    let text = writer.text.trim().to_owned();
    if text.is_empty() {
        return Err(format!(
            "the PDF file has {} pages, and none of them has text: they are probably scanned",
            pages.len()
        ));
    }
    Ok(Pdf { title: title(&document), pages: pages.len(), text, is_cut })
}

fn title(document: &Document) -> String {
    let information = document.trailer.get(b"Info").and_then(|info| document.dereference(info));
    let title = information.and_then(|(_, info)| info.as_dict()?.get_deref(b"Title", document)?.as_str());
    let Ok(bytes) = title else { return String::new() };
    match bytes {
        [0xfe, 0xff, ..] => encoding_rs::UTF_16BE.decode(bytes).0.into_owned(),
        bytes => std::str::from_utf8(bytes)
            .map_or_else(|_| encoding_rs::WINDOWS_1252.decode(bytes).0.into_owned(), str::to_owned),
    }
}

/// What a font says about its characters.
struct Font<'a> {
    encoding: Option<Encoding<'a>>,
    /// Bytes of a character.
    bytes: usize,
    widths: HashMap<u32, f32>,
    /// The width of the other characters, in thousandths of the size.
    width: f32,
}

impl<'a> Font<'a> {
    fn of(document: &'a Document, font: &'a Dictionary) -> Self {
        let encoding = font.get_font_encoding_with_limit(document, UNPACKED).ok();
        let mut widths = HashMap::new();
        let number = |object: &Object| document.dereference(object).ok().and_then(|(_, object)| object.as_float().ok());
        let list = |of: &'a Dictionary, key: &[u8]| of.get_deref(key, document).and_then(Object::as_array).ok();
        let below = list(font, b"DescendantFonts").and_then(|fonts| fonts.first());
        let below = below.and_then(|below| document.dereference(below).ok()?.1.as_dict().ok());
        if let Some(below) = below {
            let width = below.get(b"DW").ok().and_then(number).unwrap_or(1_000.0);
            let mut entries = list(below, b"W").into_iter().flatten();
            while let (Some(first), Some(second)) = (entries.next().and_then(number), entries.next()) {
                let first = first.max(0.0) as u32;
                match document.dereference(second).map(|(_, second)| second) {
                    Ok(Object::Array(each)) => {
                        widths.extend((first..).zip(each.iter().filter_map(number)).take(0x1_0000));
                    }
                    Ok(last) => {
                        let (Ok(last), Some(width)) = (last.as_float(), entries.next().and_then(number)) else { break };
                        widths.extend((first..=(last.max(0.0) as u32).min(0xffff)).map(|code| (code, width)));
                    }
                    Err(_) => break,
                }
            }
            return Self { encoding, bytes: 2, widths, width };
        }
        let first = font.get(b"FirstChar").ok().and_then(number).unwrap_or(0.0).max(0.0) as u32;
        widths.extend((first..).zip(list(font, b"Widths").into_iter().flatten().filter_map(number)).take(256));
        Self { encoding, bytes: 1, widths, width: 500.0 }
    }

    fn text(&self, bytes: &[u8]) -> String {
        let decoded = self.encoding.as_ref().and_then(|encoding| Document::decode_text(encoding, bytes).ok());
        decoded.unwrap_or_default()
    }

    /// The width of a string for a size of 1, its characters, and its blanks.
    fn measure(&self, string: &[u8]) -> (f32, f32, f32) {
        let (mut width, mut count, mut blanks) = (0.0, 0.0, 0.0);
        for code in string.chunks(self.bytes) {
            let code = code.iter().fold(0, |code, byte| code << 8 | u32::from(*byte));
            width += self.widths.get(&code).copied().unwrap_or(self.width) / 1_000.0;
            count += 1.0;
            if self.bytes == 1 && code == 32 {
                blanks += 1.0;
            }
        }
        (width, count, blanks)
    }
}

/// An affine map, as PDF writes it: a, b, c, d, e, f.
#[derive(Clone, Copy)]
struct Matrix([f32; 6]);

impl Matrix {
    const SAME: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    /// First this map, then the other.
    fn then(self, other: Self) -> Self {
        let ([a, b, c, d, e, f], [k, l, m, n, o, p]) = (self.0, other.0);
        Self([a * k + b * m, a * l + b * n, c * k + d * m, c * l + d * n, e * k + f * m + o, e * l + f * n + p])
    }

    fn moved(self, x: f32, y: f32) -> Self {
        Self([1.0, 0.0, 0.0, 1.0, x, y]).then(self)
    }
}

/// The parameters of text that `q` saves and `Q` restores.
#[derive(Clone, Copy)]
struct State<'a> {
    map: Matrix,
    font: Option<&'a Font<'a>>,
    size: f32,
    leading: f32,
    /// Between characters, and in addition at blanks.
    spacing: (f32, f32),
    stretch: f32,
}

/// Shows the content of a page.
fn show(content: &[u8], fonts: &BTreeMap<Vec<u8>, Font<'_>>, writer: &mut Writer) {
    let mut state = State { map: Matrix::SAME, font: None, size: 1.0, leading: 0.0, spacing: (0.0, 0.0), stretch: 1.0 };
    let mut saved = Vec::new();
    let (mut line, mut text) = (Matrix::SAME, Matrix::SAME);
    for operation in Content::decode_iter(content) {
        let Ok(operation) = operation else { break };
        writer.operations = writer.operations.saturating_sub(1);
        if writer.operations == 0 || writer.text.len() > TEXT {
            break;
        }
        let operands = &operation.operands;
        let number = |at: usize| operands.get(at).and_then(|operand| operand.as_float().ok()).unwrap_or(0.0);
        let matrix = || Matrix([0, 1, 2, 3, 4, 5].map(number));
        let down = |line: Matrix, leading: f32| line.moved(0.0, -leading);
        match operation.operator.as_str() {
            "q" if saved.len() < STATES => saved.push(state),
            "Q" => state = saved.pop().unwrap_or(state),
            "cm" => state.map = matrix().then(state.map),
            "BT" => (line, text) = (Matrix::SAME, Matrix::SAME),
            "Tf" => {
                state.font = operands.first().and_then(|name| fonts.get(name.as_name().ok()?));
                state.size = number(1);
            }
            "TL" => state.leading = number(0),
            "Tc" => state.spacing.0 = number(0),
            "Tw" => state.spacing.1 = number(0),
            "Tz" => state.stretch = number(0) / 100.0,
            "Tm" => (line, text) = (matrix(), matrix()),
            "Td" | "TD" => {
                if operation.operator == "TD" {
                    state.leading = -number(1);
                }
                line = line.moved(number(0), number(1));
                text = line;
            }
            "T*" => {
                line = down(line, state.leading);
                text = line;
            }
            "Tj" | "TJ" => state.put(operands, &mut text, writer),
            "'" | "\"" => {
                if operation.operator == "\"" {
                    state.spacing = (number(1), number(0));
                }
                line = down(line, state.leading);
                text = line;
                state.put(&operands[operands.len().saturating_sub(1)..], &mut text, writer);
            }
            _ => {}
        }
    }
}

impl State<'_> {
    /// Shows strings, with distances between them.
    fn put(&self, operands: &[Object], text: &mut Matrix, writer: &mut Writer) {
        let Some(font) = self.font else { return };
        for operand in operands {
            match operand {
                Object::Array(parts) => parts.iter().for_each(|part| self.part(font, part, text, writer)),
                part => self.part(font, part, text, writer),
            }
        }
    }

    fn part(&self, font: &Font<'_>, part: &Object, text: &mut Matrix, writer: &mut Writer) {
        if let Ok(string) = part.as_str() {
            let (width, count, blanks) = font.measure(string);
            let advance = (width * self.size + count * self.spacing.0 + blanks * self.spacing.1) * self.stretch;
            let from = text.then(self.map);
            *text = text.moved(advance, 0.0);
            let to = text.then(self.map);
            let height = (self.size * from.0[2].hypot(from.0[3])).abs();
            writer.write(&font.text(string), (from.0[4], from.0[5]), (to.0[4], to.0[5]), height);
        } else if let Ok(distance) = part.as_float() {
            *text = text.moved(-distance / 1_000.0 * self.size * self.stretch, 0.0);
        }
    }
}

/// Joins strings to lines and paragraphs.
struct Writer {
    text: String,
    /// The end of the last string, and its height.
    last: Option<((f32, f32), f32)>,
    /// How many operations may follow.
    operations: usize,
}

impl Writer {
    fn write(&mut self, text: &str, from: (f32, f32), to: (f32, f32), height: f32) {
        if let Some(((x, y), before)) = self.last {
            let size = height.max(before).max(0.1);
            let (right, down) = (from.0 - x, (y - from.1) / size);
            // A formula's exponent is on the same line, a new line below it, and a new column above it.
            if !(-1.0..=2.0).contains(&down) {
                self.paragraph();
            } else if down.abs() > 0.6 {
                self.end("\n");
            } else if (right > size * 0.18 || right < -size * 2.0) && !text.starts_with(char::is_whitespace) {
                self.end(" ");
            }
        }
        for sign in text.chars() {
            match sign {
                '\u{fb00}' => self.text.push_str("ff"),
                '\u{fb01}' => self.text.push_str("fi"),
                '\u{fb02}' => self.text.push_str("fl"),
                '\u{fb03}' => self.text.push_str("ffi"),
                '\u{fb04}' => self.text.push_str("ffl"),
                sign => self.text.push(sign),
            }
        }
        self.last = Some((to, height));
    }

    fn paragraph(&mut self) {
        self.end("\n\n");
        self.last = None;
    }

    /// Ends a word, a line or a paragraph, unless it has ended.
    fn end(&mut self, with: &str) {
        if with != " " {
            self.text.truncate(self.text.trim_end_matches(' ').len());
        }
        let has_ended = self.text.ends_with(with) || (with == " " && self.text.ends_with(char::is_whitespace));
        if !self.text.is_empty() && !has_ended {
            self.text.push_str(with);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use super::*;

    /// A file of pages with these contents and a font, Helvetica as `F`, whose characters are half as wide as high.
    pub(crate) fn file(contents: &[&str]) -> Vec<u8> {
        let widths = "500 ".repeat(95);
        let mut objects = vec![
            "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
            String::new(),
            format!(
                "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding /FirstChar 32 /Widths [{widths}] >>"
            ),
            "<< /Title (Times of the ferries) >>".to_owned(),
        ];
        let mut kids = String::new();
        for content in contents {
            objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
            let content = objects.len();
            objects.push(format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {content} 0 R /Resources << /Font << /F 3 0 R >> >> >>"
            ));
            kids.push_str(&format!("{} 0 R ", objects.len()));
        }
        objects[1] = format!("<< /Type /Pages /Count {} /Kids [{kids}] >>", contents.len());
        let (mut file, mut places) = ("%PDF-1.5\n".to_owned(), String::new());
        for (number, object) in (1..).zip(&objects) {
            places.push_str(&format!("{:010} 00000 n \n", file.len()));
            file.push_str(&format!("{number} 0 obj\n{object}\nendobj\n"));
        }
        let (start, count) = (file.len(), objects.len() + 1);
        file.push_str(&format!("xref\n0 {count}\n0000000000 65535 f \n{places}"));
        file.push_str(&format!("trailer\n<< /Size {count} /Root 1 0 R /Info 4 0 R >>\nstartxref\n{start}\n%%EOF\n"));
        file.into_bytes()
    }

    #[test]
    fn glyphs_become_words_lines_and_paragraphs_by_their_places() {
        let file = file(&[
            "BT /F 10 Tf 14 TL 50 700 Td (Ferries) Tj ( leave) Tj T* [(at) -400 (07:4) 20 (5)] TJ 0 -40 Td (Tickets:) Tj \
             ET BT /F 10 Tf 1 0 0 1 95 646 Tm (4 euros) Tj ET",
            "q 2 0 0 2 0 0 cm BT /F 10 Tf 50 300 Td (Caf\\351) ' ET Q",
        ]);
        let pdf = read(&file).unwrap();
        assert_eq!(pdf.text, "Ferries leave\nat 07:45\n\nTickets: 4 euros\n\nCafé");
        assert_eq!((pdf.title.as_str(), pdf.pages, pdf.is_cut), ("Times of the ferries", 2, false));
    }

    #[test]
    fn a_file_without_text_says_so() {
        assert!(read(&file(&["0 0 100 100 re f"])).unwrap_err().contains("probably scanned"));
        assert!(read(b"%PDF-1.4\nnothing").unwrap_err().starts_with("the PDF file cannot be read: "));
    }

    mod attack {
        use super::*;

        #[test]
        fn hostile_contents_end_and_do_not_panic() {
            let contents = [
                "BT ".repeat(10_000),
                "q ".repeat(20_000) + "Q Q Q BT /F 10 Tf (x) Tj ET",
                "[".repeat(10_000),
                "(".repeat(10_000),
                "<<".repeat(10_000),
                "BT /F 1e38 Tf 1e38 1e38 Td (x) Tj 1e38 TL T* (y) ' -1e38 Tz (z) Tj ET".to_owned(),
                "BT /F 10 Tf ' \" Tj TJ Td Tm cm Tf ET".to_owned(),
                "BT /F 10 Tf [(a) (b) 1 2 [3 (c)] null] TJ ET".to_owned(),
                format!("BT /F 10 Tf [{}] TJ ET", "(x) -9999999 ".repeat(5_000)),
                "\u{0}\u{1}\u{2}".repeat(1_000),
            ];
            for content in &contents {
                // The result does not matter: reading must only end.
                let _ = read(&file(&[content, "BT /F 10 Tf (after) Tj ET"]));
            }
        }

        #[test]
        fn mutated_files_do_not_panic() {
            let whole = file(&["BT /F 10 Tf 50 700 Td (Ferries) Tj [(at) -400 (07)] TJ ET", "BT /F 9 Tf (x) ' ET"]);
            let mut seed = 0x2545_f491_u32;
            let mut random = |below: usize| {
                seed ^= seed << 13;
                seed ^= seed >> 17;
                seed ^= seed << 5;
                seed as usize % below
            };
            for _ in 0..500 {
                let mut file = whole.clone();
                for _ in 0..=random(8) {
                    let at = random(file.len().max(1));
                    match random(4) {
                        _ if file.is_empty() => {}
                        0 => file[at] = random(256) as u8,
                        1 => drop(file.drain(at..(at + random(40)).min(whole.len()).min(file.len()))),
                        2 => file.truncate(at.max(1)),
                        _ => file[at] = b"0123456789<>[]()/R "[random(19)],
                    }
                }
                let _ = read(&file);
            }
        }

        #[test]
        fn a_file_of_the_same_page_many_times_is_cut() {
            let long = "BT /F 10 Tf ".to_owned() + &"(many words) Tj 0 -14 Td ".repeat(2_000) + "ET";
            let pdf = read(&file(&[long.as_str(); 8])).unwrap();
            assert!(pdf.is_cut && pdf.text.len() <= TEXT + (1 << 20), "{}", pdf.text.len());
        }
    }
}
