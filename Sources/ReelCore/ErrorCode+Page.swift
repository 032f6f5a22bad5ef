extension ErrorCode {
    /// docs/reference/errors.md, in Markdown.
    public static func page() -> String {
        var page = """
            # Errors

            Every error has a stable code. On the socket it stands in `code` of an `error` or `nack`; over HTTP in
            `code` of an `application/problem+json` body, with the status below; in `rejected(code)` it says why the
            fold gave an event no effect. The message beside it says what was found and what was expected.

            A connection stays open after an error unless the table names the WebSocket close code that ends it.

            This page is made from the table in the code: `reel help --errors` prints it.

            | code | HTTP | closes with | again? | meaning |
            | --- | --- | --- | --- | --- |

            """
        for code in allCases {
            let entry = code.entry
            let close = entry.close.map { String($0) } ?? "–"
            page += "| [`\(code.rawValue)`](#\(code.rawValue)) | \(entry.status) | \(close) "
            page += "| \(entry.retry.rawValue) | \(entry.title) |\n"
        }
        for code in allCases {
            page += "\n## \(code.rawValue)\n\n\(code.entry.meaning)\n\n\(code.entry.advice)\n"
        }
        return page
    }
}
