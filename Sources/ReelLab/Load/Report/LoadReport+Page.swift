import Glibc

extension LoadReport {
    /// Returns the report as one self-contained HTML page. `expectations`: the expected and the measured values.
    public func page(_ expectations: [(text: String, isReached: Bool, found: String)]) -> String {
        let verdict = isComplete && expectations.allSatisfy(\.isReached)
        let checks = expectations.map { check in
            let outcome = check.isReached ? ("good", "reached") : ("bad", "missed")
            return "<tr><td>\(Self.escaped(check.text))</td><td>\(check.found)</td>"
                + "<td class=\"\(outcome.0)\">\(outcome.1)</td></tr>"
        }
        let expected = Self.table("<th>expected</th><th>found</th><th></th>", checks)
        let word = verdict ? ("good", "as expected") : ("bad", "not as expected")
        let complaints = problems.map { "<li class=\"bad\">\(Self.escaped($0))</li>" }
        return """
            <!doctype html>
            <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
            <title>reel load</title>
            <style>\(Self.style)</style></head><body>
            <h1>reel load <span class="\(word.0)">\(word.1)</span></h1>
            <p>\(clients) on \(Self.counted(plan.streams.count, "stream")) of \
            \(Self.counted(plan.urls.count, "gateway")), \(Self.short(plan.rate)) events/s for \
            \(Self.short(publishingSeconds)) s, seed \(plan.seed)</p>
            <section class="tiles">\(tiles)</section>
            \(complaints.isEmpty ? "" : "<ul>\(complaints.joined())</ul>")
            \(checks.isEmpty ? "" : expected)
            \(table)
            \(plots.map(\.figure).joined(separator: "\n"))
            </body></html>

            """
    }

    private var clients: String {
        let kinds = [
            (plan.publishers, "publisher"), (plan.readers, "reader"), (plan.editors, "editor"),
            (plan.coldStarts, "cold start"),
        ]
        let words = kinds.filter { $0.0 > 0 }.map {
            Self.counted($0.0, $0.1) + ($0.1 == "cold start" ? " a second" : "")
        }
        return words.joined(separator: ", ")
    }

    private static func counted(_ count: Int, _ what: String) -> String {
        "\(grouped(count)) \(what)\(count == 1 ? "" : "s")"
    }

    private var tiles: String {
        [
            (
                "acked", Self.grouped(statistics.acked),
                unacked == 0 ? "all that were due" : "\(Self.grouped(unacked)) never"
            ),
            (
                "delivered", Self.grouped(statistics.delivered),
                behind == 0 ? "to all readers" : "\(behind) readers are behind"
            ),
            ("ack p99", Self.time(Double(statistics.ack.quantile(0.99))), "from the moment it was due"),
            (
                "longest pause", Self.time(Double(statistics.pause.max)),
                "of a publisher; \(Self.counted(statistics.reconnects, "connection")) lost"
            ),
        ].map { "<div><b>\($0.1)</b><span>\($0.0)</span><small>\($0.2)</small></div>" }.joined()
    }

    private var table: String {
        let rows = [
            ("ack", statistics.ack), ("delivery", statistics.delivery), ("cold start", statistics.coldStart),
            ("longest pause of a publisher", statistics.pause),
        ].filter { $0.1.count > 0 }.map { name, histogram in
            let cells = [0.5, 0.9, 0.99, 0.999, 1].map { "<td>\(Self.time(Double(histogram.quantile($0))))</td>" }
            return "<tr><td>\(name)</td>\(cells.joined())<td>\(Self.grouped(Int(histogram.count)))</td></tr>"
        }
        let heads = ["", "p50", "p90", "p99", "p99.9", "max", "of"].map { "<th>\($0)</th>" }
        return Self.table(heads.joined(), rows)
    }

    /// Returns a table that scrolls on a narrow screen, so that the page does not.
    private static func table(_ head: String, _ rows: [String]) -> String {
        "<div class=\"wide\"><table><tr>\(head)</tr>\(rows.joined())</table></div>"
    }

    private var plots: [LoadPlot] {
        let seconds = statistics.seconds
        func line(_ name: String, _ style: String, _ value: (LoadStatistics.Second) -> Double?) -> LoadPlot.Line {
            LoadPlot.Line(
                name: name,
                style: style,
                points: seconds.enumerated().compactMap { index, second in
                    value(second).map { (Double(index + 1), $0) }
                }
            )
        }
        func quantile(_ kind: KeyPath<LoadStatistics.Second, LatencyHistogram>, _ part: Double)
            -> (LoadStatistics.Second) -> Double?
        {
            { $0[keyPath: kind].count > 0 ? Double($0[keyPath: kind].quantile(part)) : nil }
        }
        let byTime = { (x: Double) in "\(Int(x)) s" }
        return [
            LoadPlot(
                title: "acked a second",
                lines: [line("acked", "one") { Double($0.acked) }],
                scale: .linear,
                yLabel: { Self.grouped(Int($0)) },
                xLabel: byTime
            ),
            LoadPlot(
                title: "delivered a second",
                lines: [line("delivered", "two") { Double($0.delivered) }],
                scale: .linear,
                yLabel: { Self.grouped(Int($0)) },
                xLabel: byTime
            ),
            LoadPlot(
                title: "time to the ack, second by second",
                lines: [
                    line("p50", "one", quantile(\.ack, 0.5)), line("p99", "two", quantile(\.ack, 0.99)),
                    line("max", "three", quantile(\.ack, 1)),
                ],
                scale: .logarithmic,
                yLabel: Self.time,
                xLabel: byTime
            ),
            LoadPlot(
                title: "connections",
                lines: [line("with a welcome", "one") { Double($0.connected) }],
                scale: .linear,
                yLabel: { Self.grouped(Int($0)) },
                xLabel: byTime
            ),
            LoadPlot(
                title: "latency by the part of events that were faster",
                lines: [
                    LoadPlot.Line(name: "ack", style: "one", points: Self.curve(statistics.ack)),
                    LoadPlot.Line(name: "delivery", style: "two", points: Self.curve(statistics.delivery)),
                ].filter { !$0.points.isEmpty },
                scale: .logarithmic,
                yLabel: Self.time,
                xLabel: { Self.percent(nines: $0) },
                xMarks: [0, 1, 2, 3, 4]
            ),
        ]
    }

    /// Returns the quantiles from 0 % to 99.99 %, over the number of nines.
    private static func curve(_ histogram: LatencyHistogram) -> [(x: Double, y: Double)] {
        guard histogram.count > 0 else { return [] }
        return (0...80).map { step in
            let nines = Double(step) / 20
            return (nines, Double(histogram.quantile(1 - pow(10, -nines))))
        }
    }

    private static func percent(nines: Double) -> String {
        ["0 %", "90 %", "99 %", "99.9 %", "99.99 %"][min(4, max(0, Int(nines)))]
    }

    /// Returns a time as `850 µs`, `12.3 ms` or `1.2 s`.
    private static func time(_ nanoseconds: Double) -> String {
        switch nanoseconds {
        case ..<1e3: "\(Int(nanoseconds)) ns"
        case ..<1e6: "\(short(nanoseconds / 1e3)) µs"
        case ..<1e9: "\(short(nanoseconds / 1e6)) ms"
        default: "\(short(nanoseconds / 1e9)) s"
        }
    }

    private static func short(_ value: Double) -> String {
        value >= 100 || value == value.rounded() ? "\(Int(value.rounded()))" : "\((value * 10).rounded() / 10)"
    }

    /// Returns a number as `1,234,567`.
    private static func grouped(_ value: Int) -> String {
        var digits = String(abs(value))
        var groups: [String] = []
        while digits.count > 3 {
            groups.insert(String(digits.suffix(3)), at: 0)
            digits.removeLast(3)
        }
        return (value < 0 ? "-" : "") + ([digits] + groups).joined(separator: ",")
    }

    private static func escaped(_ text: String) -> String {
        text.map { character in
            switch character {
            case "<": "&lt;"
            case ">": "&gt;"
            case "&": "&amp;"
            default: String(character)
            }
        }.joined()
    }

    private static let style = """
        :root{--ink:#1c2330;--soft:#667085;--line:#e4e7ec;--page:#fff;--one:#2563eb;--two:#d97706;--three:#b91c1c}
        @media(prefers-color-scheme:dark){:root{--ink:#e6e9ef;--soft:#98a2b3;--line:#2b3340;--page:#11151c;
        --one:#60a5fa;--two:#fbbf24;--three:#f87171}}
        body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);max-width:760px;
        margin:2rem auto;padding:0 1rem}
        h1{font-size:1.4rem}h1 span{font-size:.8rem;padding:.15rem .6rem;border-radius:1rem;color:#fff;
        vertical-align:middle}
        h1 .good{background:#15803d}h1 .bad{background:#b91c1c}
        .tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(160px,1fr));gap:.75rem;margin:1rem 0}
        .tiles div{border:1px solid var(--line);border-radius:.5rem;padding:.75rem}
        .tiles b{display:block;font-size:1.5rem;font-variant-numeric:tabular-nums}.tiles span{display:block}
        small,.mark{color:var(--soft)}
        .wide{overflow-x:auto}
        table{border-collapse:collapse;width:100%;margin:1rem 0;font-variant-numeric:tabular-nums}
        th,td{text-align:right;padding:.3rem .5rem;border-bottom:1px solid var(--line)}
        th{font-weight:500;color:var(--soft)}th:first-child,td:first-child{text-align:left}
        td.good{color:#15803d}td.bad,li.bad{color:var(--three)}
        figure{margin:1.5rem 0}figcaption{font-weight:600;margin-bottom:.25rem}
        .key{font-weight:400;margin-left:.75rem;color:var(--soft)}.key::before{content:"";display:inline-block;
        width:1rem;height:3px;margin-right:.35rem;vertical-align:middle;background:currentColor}
        .key.one::before{color:var(--one)}.key.two::before{color:var(--two)}.key.three::before{color:var(--three)}
        svg{width:100%;height:auto;display:block}.grid{stroke:var(--line)}.mark{font-size:11px;fill:var(--soft)}
        polyline{fill:none;stroke-width:1.8;stroke-linejoin:round}
        polyline.one{stroke:var(--one)}polyline.two{stroke:var(--two)}polyline.three{stroke:var(--three)}
        circle.one{fill:var(--one)}circle.two{fill:var(--two)}circle.three{fill:var(--three)}
        """
}
