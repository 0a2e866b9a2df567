//! Tables: rows are collected, then fitted to the width and drawn, once.
//!
//! Owns how a row falls into cells, the widths of columns and the lines around them. A table that is
//! too wide becomes records of `Header: value`; a long one is drawn after some rows with the widths
//! they ask for, and the others follow as they come. Nothing is ever cut off (SPEC F8).

use crate::render::flow::Flow;
use crate::render::inline;
use crate::render::text::{Span, columns, packing_columns, wrap};
use crate::render::theme::{Page, Role, Style};

/// After how many rows the widths are settled.
const ROWS: usize = 200;
/// After how many bytes of source the widths are settled.
const BYTES: usize = 64 * 1024;
/// What each column of a grid has at least, unless it needs less.
const COLUMN: usize = 8;
/// Where fewer columns than this are left there are only records.
const GRID: usize = 10;

/// How the text of a column stands in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alignment {
    Left,
    Center,
    Right,
}

type Cell = Vec<Span<Style>>;

/// How a table is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Layout {
    /// Columns of these widths.
    Grid(Vec<usize>),
    Records,
}

/// A table that is arriving.
#[derive(Debug)]
pub(super) struct Table {
    alignments: Vec<Alignment>,
    header: Vec<Cell>,
    rows: Vec<Vec<Cell>>,
    /// How much source is in the rows that are collected.
    bytes: usize,
    /// How it is drawn, once that is settled.
    layout: Option<Layout>,
    /// Whether a record has been written.
    recorded: bool,
}

/// The alignments that a delimiter row such as `|:--|--:|` gives.
pub(super) fn delimiter(line: &str) -> Option<Vec<Alignment>> {
    if !line.contains(['|', ':', '-']) || line.starts_with("- ") {
        return None;
    }
    let alignment = |cell: &String| {
        let dashes = cell.trim_start_matches(':').trim_end_matches(':');
        let is_delimiter = !dashes.is_empty() && dashes.bytes().all(|byte| byte == b'-');
        let colons = (cell.starts_with(':'), cell.ends_with(':'));
        is_delimiter.then_some(match colons {
            (true, true) => Alignment::Center,
            (false, true) => Alignment::Right,
            _ => Alignment::Left,
        })
    };
    cells(line).iter().map(alignment).collect()
}

/// Whether `text` can be a part of a delimiter row.
pub(super) fn may_be_delimiter(text: &str) -> bool {
    text.bytes()
        .all(|byte| matches!(byte, b'|' | b':' | b'-' | b' ' | b'\t'))
}

/// The source of a row's cells: what stands between pipes, of which a backslash takes one away.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let mut cells = vec![String::new()];
    let mut is_escaped = false;
    for c in line.chars() {
        match (c, cells.last_mut()) {
            ('|', Some(cell)) if is_escaped => {
                cell.pop();
                cell.push(c);
            }
            ('|', _) => cells.push(String::new()),
            (_, Some(cell)) => cell.push(c),
            (_, None) => {}
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    if cells.len() > 1 && cells.last().is_some_and(|cell| cell.trim().is_empty()) {
        cells.pop();
    }
    for cell in &mut cells {
        *cell = cell.trim().to_owned();
    }
    cells
}

impl Table {
    /// The table under these two lines, if they are the head of one.
    pub(super) fn begin(header: &str, delimiter_row: &str) -> Option<Self> {
        let alignments = delimiter(delimiter_row)?;
        let cells = cells(header);
        if cells.len() != alignments.len() {
            return None;
        }
        let style = Style::default().with(Style::BOLD);
        Some(Self {
            alignments,
            header: cells
                .iter()
                .map(|cell| inline::spans(cell, style))
                .collect(),
            rows: Vec::new(),
            bytes: header.len(),
            layout: None,
            recorded: false,
        })
    }

    /// Takes a row in. Cells beyond those of the header stay in the last one: mostly a pipe stood
    /// there that was none.
    pub(super) fn push(&mut self, line: &str, flow: &mut Flow, page: &mut Page) {
        let mut cells = cells(line);
        let last = self.header.len().saturating_sub(1);
        if cells.len() > self.header.len() {
            let rest = cells.split_off(last).join(" | ");
            cells.push(rest);
        }
        let row: Vec<Cell> = cells
            .iter()
            .map(|cell| inline::spans(cell, Style::default()))
            .collect();
        if self.layout.is_some() {
            self.draw_row(&row, flow, page);
            return;
        }
        self.bytes += line.len();
        self.rows.push(row);
        if self.rows.len() >= ROWS || self.bytes >= BYTES {
            self.draw_rows(flow, page);
        }
    }

    /// Draws what is not drawn yet, to the end of the table.
    pub(super) fn finish(mut self, flow: &mut Flow, page: &mut Page) {
        if self.layout.is_none() {
            self.draw_rows(flow, page);
        }
        match &self.layout {
            Some(Layout::Grid(widths)) => draw_line(["└", "┴", "┘"], widths, flow, page),
            _ if !self.recorded => {
                let empty = vec![Vec::new(); self.header.len()];
                self.draw_record(&empty, flow, page);
            }
            _ => {}
        }
    }

    /// Settles the layout and draws the rows so far.
    fn draw_rows(&mut self, flow: &mut Flow, page: &mut Page) {
        let layout = fit(&self.natural_widths(), flow.room());
        if let Layout::Grid(widths) = &layout {
            draw_line(["┌", "┬", "┐"], widths, flow, page);
            self.draw_grid_row(&self.header, widths, flow, page);
            draw_line(["├", "┼", "┤"], widths, flow, page);
        }
        self.layout = Some(layout);
        for row in std::mem::take(&mut self.rows) {
            self.draw_row(&row, flow, page);
        }
    }

    fn natural_widths(&self) -> Vec<usize> {
        let mut widths = vec![1; self.header.len()];
        for row in std::iter::once(&self.header).chain(&self.rows) {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell_columns(cell).max(*width);
            }
        }
        widths
    }

    fn draw_row(&mut self, row: &[Cell], flow: &mut Flow, page: &mut Page) {
        match &self.layout {
            Some(Layout::Grid(widths)) => self.draw_grid_row(row, widths, flow, page),
            _ => self.draw_record(row, flow, page),
        }
    }

    fn draw_grid_row(&self, row: &[Cell], widths: &[usize], flow: &mut Flow, page: &mut Page) {
        let cells: Vec<_> = widths
            .iter()
            .enumerate()
            .map(|(index, width)| wrap(row.get(index).map_or(&[][..], Vec::as_slice), *width))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            let texts: Vec<&[Span<Style>]> = cells
                .iter()
                .map(|rows| rows.get(line).map_or(&[][..], Vec::as_slice))
                .collect();
            flow.row(&self.grid_line(&texts, widths, flow.room()), page);
        }
    }

    /// One line of a row: aligned as this terminal counts, unless another could find it too wide.
    fn grid_line(&self, texts: &[&[Span<Style>]], widths: &[usize], room: usize) -> Cell {
        let count = |measure: fn(&str) -> usize, text: &[Span<Style>]| -> usize {
            text.iter().map(|span| measure(&span.text)).sum()
        };
        let surplus: usize = texts
            .iter()
            .map(|text| {
                count(packing_columns, text)
                    - count(columns, text).min(count(packing_columns, text))
            })
            .sum();
        let total = widths.iter().sum::<usize>() + 3 * widths.len() + 1;
        let measure = if total + surplus <= room {
            columns
        } else {
            packing_columns
        };
        let frame = Role::Frame.style();
        let mut line = Vec::new();
        for ((text, width), alignment) in texts.iter().zip(widths).zip(&self.alignments) {
            let padding = width.saturating_sub(count(measure, text));
            let left = match alignment {
                Alignment::Left => 0,
                Alignment::Center => padding / 2,
                Alignment::Right => padding,
            };
            let bar = if line.is_empty() { "│" } else { " │" };
            push(&mut line, bar, frame);
            push(&mut line, &" ".repeat(left + 1), Style::default());
            line.extend(text.iter().cloned());
            push(&mut line, &" ".repeat(padding - left), Style::default());
        }
        push(&mut line, " │", frame);
        line
    }

    fn draw_record(&mut self, row: &[Cell], flow: &mut Flow, page: &mut Page) {
        if self.recorded {
            flow.row(&[], page);
        }
        self.recorded = true;
        let colon = if row.is_empty() { "" } else { ":" };
        for (header, cell) in self.header.iter().zip(row) {
            let mut line = header.clone();
            if !header.is_empty() {
                push(&mut line, colon, Style::default().with(Style::BOLD));
                push(&mut line, " ", Style::default());
            }
            line.extend(cell.iter().cloned());
            if line.is_empty() {
                continue;
            }
            for row in wrap(&line, flow.room()) {
                flow.row(&row, page);
            }
        }
    }
}

/// How to draw columns that want to be this wide in `room` columns.
fn fit(natural: &[usize], room: usize) -> Layout {
    let frame = 3 * natural.len() + 1;
    let budget = room.saturating_sub(frame);
    let least: usize = natural.iter().map(|width| COLUMN.min(*width)).sum();
    if room < GRID || least > budget {
        return Layout::Records;
    }
    let mut widths = natural.to_vec();
    let mut order: Vec<usize> = (0..natural.len()).collect();
    order.sort_by_key(|index| natural.get(*index).copied());
    let mut left = budget;
    let mut wide = natural.len();
    for index in order {
        let share = left / wide.max(1);
        let Some(width) = widths.get_mut(index) else {
            continue;
        };
        if *width > share {
            break;
        }
        left -= *width;
        wide -= 1;
    }
    let Some(share) = left.checked_div(wide) else {
        return Layout::Grid(widths);
    };
    let mut extra = left % wide;
    for width in widths.iter_mut().filter(|width| **width > share) {
        *width = share + usize::from(extra > 0);
        extra = extra.saturating_sub(1);
    }
    Layout::Grid(widths)
}

fn draw_line(corners: [&str; 3], widths: &[usize], flow: &mut Flow, page: &mut Page) {
    let [left, cross, right] = corners;
    let bars: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
    let text = format!("{left}{}{right}", bars.join(cross));
    let mut line = Vec::new();
    push(&mut line, &text, Role::Frame.style());
    flow.row(&line, page);
}

fn push(line: &mut Cell, text: &str, style: Style) {
    if !text.is_empty() {
        line.push(Span {
            text: text.to_owned(),
            style,
        });
    }
}

/// The columns of the longest line of a cell.
fn cell_columns(cell: &[Span<Style>]) -> usize {
    let mut longest = 0;
    let mut line = 0;
    for span in cell {
        for (index, part) in span.text.split('\n').enumerate() {
            if index > 0 {
                line = 0;
            }
            line += packing_columns(part);
            longest = longest.max(line);
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::prefix::Prefix;

    fn drawn(source: &str, width: usize) -> Vec<String> {
        let mut lines = source.lines();
        let (header, delimiter) = (lines.next().expect("header"), lines.next().expect("row"));
        let mut table = Table::begin(header, delimiter).expect("a table");
        let mut flow = Flow::default();
        let mut page = Page::new(false);
        flow.begin(None, Prefix::default(), width, false);
        for line in lines {
            table.push(line, &mut flow, &mut page);
        }
        table.finish(&mut flow, &mut page);
        let text = String::from_utf8(page.as_bytes().to_vec()).expect("text");
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn f8_a_table_takes_the_width_it_needs() {
        let source = "| A | 値 |\n|---|---:|\n| x\\|y | 日本 |\n| `p \\| q` | 1 |";
        assert_eq!(
            drawn(source, 80),
            [
                "┌───────┬──────┐",
                "│ A     │   値 │",
                "├───────┼──────┤",
                "│ x|y   │ 日本 │",
                "│ p | q │    1 │",
                "└───────┴──────┘",
            ]
        );
    }

    #[test]
    fn f8_cells_are_aligned_and_break_where_they_say() {
        let source = "|Name|State|Description|\n|:--|:-:|--:|\n|foo|ok|short|\n|bar||two<br>lines|";
        assert_eq!(
            drawn(source, 40),
            [
                "┌──────┬───────┬─────────────┐",
                "│ Name │ State │ Description │",
                "├──────┼───────┼─────────────┤",
                "│ foo  │  ok   │       short │",
                "│ bar  │       │         two │",
                "│      │       │       lines │",
                "└──────┴───────┴─────────────┘",
            ]
        );
    }

    #[test]
    fn f8_a_table_too_wide_becomes_records() {
        let source = "|Name|State|Description|\n|:--|:-:|--:|\n|foo|ok|short|\n|bar||two<br>lines|";
        assert_eq!(
            drawn(source, 20),
            [
                "Name: foo",
                "State: ok",
                "Description: short",
                "",
                "Name: bar",
                "State:",
                "Description: two",
                "lines",
            ]
        );
        let source = "|Name|Description|\n|-|-|\n|日本語|https://example.com/abcdef|";
        assert_eq!(
            drawn(source, 20),
            [
                "Name: 日本語",
                "Description:",
                "https://example.com/",
                "abcdef",
            ]
        );
    }

    #[test]
    fn columns_share_what_there_is_and_none_gets_nothing() {
        assert_eq!(fit(&[3, 100, 100], 40), Layout::Grid(vec![3, 14, 13]));
        assert_eq!(fit(&[100, 3], 30), Layout::Grid(vec![20, 3]));
        assert_eq!(fit(&[4, 4], 15), Layout::Grid(vec![4, 4]));
        assert_eq!(fit(&[9, 9], 22), Layout::Records);
        assert_eq!(fit(&[1], 9), Layout::Records);
    }

    #[test]
    fn ragged_rows_are_filled_up_and_cells_without_a_column_kept() {
        let rows = drawn("|a|b|\n|-|-|\n|1|\n|1|2|3|\nplain|`p | q`", 80);
        assert_eq!(
            rows[3..6],
            [
                "│ 1     │       │",
                "│ 1     │ 2 | 3 │",
                "│ plain │ p | q │"
            ]
        );
    }

    #[test]
    fn a_delimiter_row_says_how_many_columns_there_are() {
        assert!(Table::begin("|a|b|", "|---|").is_none());
        assert!(Table::begin("|a|", "|-|").is_some());
        assert!(Table::begin("|a|b|", "-|:-:").is_some());
        assert!(Table::begin("|a|b|", "- | -").is_none());
        assert!(Table::begin("|a|", "| |").is_none());
        assert!(Table::begin("|a|b|   ", "|-|-|   ").is_some());
    }

    #[test]
    fn a_long_table_is_drawn_on_with_the_widths_of_its_first_rows() {
        let mut source = "|a|b|\n|-|-|\n".to_owned();
        for _ in 0..300 {
            source.push_str("|1|2|\n");
        }
        source.push_str("|long|2|\n");
        let rows = drawn(&source, 80);
        assert_eq!(rows.len(), 3 + 300 + 4 + 1);
        assert_eq!(rows[303], "│ l │ 2 │");
    }

    #[test]
    fn a_table_of_thousands_of_columns_is_drawn_as_records() {
        let source = format!("{0}\n{1}\n{0}\n|x|", "|a".repeat(5_000), "|-".repeat(5_000));
        let rows = drawn(&source, 80);
        assert_eq!(rows.len(), 5_000 + 1 + 1);
    }
}
