/// A table of text with headings. Each column is as wide as its longest cell.
struct TextTable {
    private let headings: [String]
    private let numbers: Set<String>
    private var rows: [[String]] = []

    /// An empty table. `numbers`: the headings of the columns that are aligned to the right.
    init(_ headings: String..., numbers: Set<String>) {
        self.headings = headings
        self.numbers = numbers
    }

    /// Adds a row. Missing cells at its end are empty.
    mutating func add(_ cells: String...) { add(cells) }

    /// Adds a row. Missing cells at its end are empty.
    mutating func add(_ cells: [String]) {
        rows.append(cells + Array(repeating: "", count: max(0, headings.count - cells.count)))
    }

    /// The lines of the table, without trailing spaces.
    var lines: [String] {
        let columns = headings.indices.map { column in rows.map { $0[column] } }
        let widths = zip(headings, columns).map { heading, cells in
            cells.reduce(heading.count) { max($0, $1.count) }
        }
        return ([headings] + rows).map { cells in
            let line = cells.indices.map { column in
                let space = String(repeating: " ", count: widths[column] - cells[column].count)
                return numbers.contains(headings[column]) ? space + cells[column] : cells[column] + space
            }.joined(separator: "  ")
            return String(line.reversed().drop { $0 == " " }.reversed())
        }
    }
}
