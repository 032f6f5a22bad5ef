import Glibc

/// A plot of a report's page: lines over one axis, as self-contained SVG.
struct LoadPlot {
    /// One line.
    struct Line {
        let name: String
        /// A class of the page's style sheet.
        let style: String
        let points: [(x: Double, y: Double)]
    }

    /// The scale of the left axis.
    enum Scale {
        /// Linear, from 0.
        case linear
        /// By powers of ten.
        case logarithmic
    }

    let title: String
    let lines: [Line]
    let scale: Scale
    /// The label at a mark of the left axis, and of the lower axis.
    let yLabel: (Double) -> String
    let xLabel: (Double) -> String
    /// The marks of the lower axis; nil: at round numbers.
    var xMarks: [Double]?

    private static let (width, height) = (720.0, 240.0)
    private static let (left, right, top, bottom) = (64.0, 28.0, 12.0, 28.0)

    var svg: String {
        let points = lines.flatMap(\.points)
        let (xLow, xHigh) = Self.bounds(points.map(\.x), atLeast: 1)
        let (yLow, yHigh) = yBounds(points.map(\.y).filter { $0 > 0 })
        func x(_ value: Double) -> Double {
            Self.left + (value - xLow) / (xHigh - xLow) * (Self.width - Self.left - Self.right)
        }
        func y(_ value: Double) -> Double {
            let part =
                scale == .linear
                ? (value - yLow) / (yHigh - yLow)
                : (log10(max(value, yLow)) - log10(yLow)) / (log10(yHigh) - log10(yLow))
            return Self.height - Self.bottom - part * (Self.height - Self.top - Self.bottom)
        }
        var svg = #"<svg viewBox="0 0 \#(Int(Self.width)) \#(Int(Self.height))" role="img" aria-label="\#(title)">"#
        for mark in yMarks(yLow, yHigh) {
            let place = Self.short(y(mark))
            svg += #"<line class="grid" x1="\#(Int(Self.left))" x2="\#(Int(Self.width - Self.right))" "#
            svg += #"y1="\#(place)" y2="\#(place)"/>"#
            svg += #"<text class="mark" x="\#(Int(Self.left) - 6)" y="\#(place)" dy="4" text-anchor="end">"#
            svg += yLabel(mark) + "</text>"
        }
        for mark in xMarks ?? Self.roundMarks(xLow, xHigh) {
            svg += #"<text class="mark" x="\#(Self.short(x(mark)))" y="\#(Int(Self.height) - 8)" text-anchor="middle">"#
            svg += xLabel(mark) + "</text>"
        }
        for line in lines where line.points.count == 1 {
            let (cx, cy) = (Self.short(x(line.points[0].x)), Self.short(y(line.points[0].y)))
            svg += #"<circle class="\#(line.style)" cx="\#(cx)" cy="\#(cy)" r="3"/>"#
        }
        for line in lines where line.points.count > 1 {
            let path = line.points.map { "\(Self.short(x($0.x))),\(Self.short(y($0.y)))" }.joined(separator: " ")
            svg += #"<polyline class="\#(line.style)" points="\#(path)"/>"#
        }
        return svg + "</svg>"
    }

    /// The plot with its title, and the names of its lines if there are several.
    var figure: String {
        let names = lines.map { #" <span class="key \#($0.style)">\#($0.name)</span>"# }.joined()
        return "<figure><figcaption>\(title)\(lines.count > 1 ? names : "")</figcaption>\(svg)</figure>"
    }

    private static func bounds(_ values: [Double], atLeast width: Double) -> (Double, Double) {
        let low = values.min() ?? 0
        return (low, max(values.max() ?? 0, low + width))
    }

    private func yBounds(_ values: [Double]) -> (Double, Double) {
        let high = values.max() ?? 1
        guard scale == .logarithmic else { return (0, Self.roundedUp(high)) }
        let low = pow(10, log10(values.min() ?? 1).rounded(.down))
        return (low, max(low * 10, pow(10, log10(high).rounded(.up))))
    }

    private func yMarks(_ low: Double, _ high: Double) -> [Double] {
        guard scale == .logarithmic else { return (0...4).map { Double($0) / 4 * high } }
        return (0...Int((log10(high) - log10(low)).rounded())).map { low * pow(10, Double($0)) }
    }

    /// Returns multiples of 1, 2, 5, 10, 20, …, at most seven.
    private static func roundMarks(_ low: Double, _ high: Double) -> [Double] {
        let power = pow(10, max(0, log10((high - low) / 6).rounded(.down)))
        let step = [1, 2, 5, 10].map { $0 * power }.first { (high - low) / $0 <= 6 } ?? high - low
        let (first, last) = ((low / step).rounded(.up), (high / step).rounded(.down))
        return stride(from: first, through: last, by: 1).map { $0 * step }
    }

    /// Returns the next of 1, 2, 4 or 8 times a power of ten.
    private static func roundedUp(_ value: Double) -> Double {
        let power = pow(10, log10(max(value, 1)).rounded(.down))
        return [1, 2, 4, 8, 10].map { $0 * power }.first { $0 >= value } ?? value
    }

    private static func short(_ value: Double) -> String {
        "\((value * 10).rounded() / 10)"
    }
}
