/// Rows under headings, in columns as wide as they need to be.
struct TextTable {
    private let headings: [String]
    private let numbers: Set<String>
    private var rows: [[String]] = []

    /// `numbers` are the headings of those columns that stand to the right.
    init(_ headings: String..., numbers: Set<String>) {
        self.headings = headings
        self.numbers = numbers
    }

    /// Adds a row; cells that are not given stay empty.
    mutating func add(_ cells: String...) { add(cells) }

    /// Adds a row; cells that are not given stay empty.
    mutating func add(_ cells: [String]) {
        rows.append(cells + Array(repeating: "", count: max(0, headings.count - cells.count)))
    }

    /// The lines, without spaces at their ends.
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
