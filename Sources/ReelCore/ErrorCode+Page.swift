extension ErrorCode {
    /// Returns docs/reference/errors.md in Markdown.
    public static func page() -> String {
        var page = """
            # Errors

            This page lists every error code, for authors of clients and for operators. Terms:
            [glossary](../glossary.md).

            Every error has a stable code. On the socket, the code is the member `code` of an `error` or `nack`. Over
            HTTP, it is the member `code` of an `application/problem+json` body, with the status below. In the outcome
            `rejected(code)`, it is the reason why the event had no effect. The message of an error contains what was
            found and what was expected.

            A connection stays open after an error unless the table has a WebSocket close code for it.

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
