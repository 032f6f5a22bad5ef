import Foundation
import ReelCore
import ReelLog
import ReelNet
import Testing

@testable import ReelGateway
@testable import ReelNode
@testable import ReelSnapshot

/// Tests that openapi.yaml and the code have the same routes.
@Suite struct OpenAPITests {
    private let page = DescribedOperation.read(String(decoding: PackageResources.openapi_yaml, as: UTF8.self))

    @Test("a gateway has the routes of the page") func aGatewayHasThe() {
        let routes = GatewayHTTP.routes(echoes: true, hasState: false).table.map(DescribedOperation.Route.init)
        #expect(Set(routes) == Set(page.filter { $0.tags.contains("gateway") }.map(\.route)))
        #expect(routes.count == Set(routes).count)
    }

    @Test("a snapshot node has its routes of the page") func aSnapshotNodeHas() {
        var described = Set(page.filter { $0.tags.contains("snapshot") }.map(\.route))
        // The page lists these parameters as parameters of gateways only.
        let events = described.first { $0.path.hasSuffix("/events") && $0.method == "GET" }
        if var events {
            described.remove(events)
            events.query.subtract(["wait", "models", "site", "outcome"])
            described.insert(events)
        }
        #expect(Set(SnapshotHTTP.routes.table.map(DescribedOperation.Route.init)) == described)
    }

    @Test("the OpenAPI page lists every state of the log") func listsLogStates() {
        let words = LogState.allCases.map(\.rawValue).joined(separator: ", ")
        let page = String(decoding: PackageResources.openapi_yaml, as: UTF8.self)
        #expect(page.contains("LogState: { enum: [\(words)] }"))
    }

    @Test("the OpenAPI page lists every status of an error code") func listsErrorStatuses() {
        let described = Set(page.flatMap(\.statuses))
        for code in ErrorCode.allCases where ![.internal, .damaged].contains(code) {
            #expect(described.contains(code.status), "\(code.rawValue): \(code.status)")
        }
    }

    @Test("the OpenAPI page states which operations check tokens") func documentsTokenChecks() {
        let unguarded = ["/healthz", "/readyz", "/openapi.yaml", "/debug/echo"]
        for operation in page {
            let isOpen = unguarded.contains(operation.route.path)
            #expect(operation.statuses.contains(401) == !isOpen, "\(operation.route)")
            #expect(operation.statuses.contains(403), "\(operation.route): a foreign page")
        }
    }

    @Test("every node serves the page") func everyNodeServesThe() async throws {
        try await LiveGateway.with { live in
            let answer = try await live.get("/openapi.yaml")
            #expect(answer.status == 200 && answer.headers["content-type"] == "application/yaml")
            #expect(answer.body == PackageResources.openapi_yaml)
        }
    }

    private static let root = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../..").standardized
    private static let validator = root.appending(path: ".build/conformance-venv/bin/openapi-spec-validator").path

    @Test(
        "the page is valid",
        .enabled(
            if: FileManager.default.isExecutableFile(atPath: validator),
            "openapi-spec-validator is missing, so the page was not judged: Tests/Conformance/setup installs it"
        )
    )
    func thePageIsValid() throws {
        let process = Process()
        process.executableURL = URL(filePath: Self.validator)
        process.arguments = [Self.root.appending(path: "Sources/ReelNode/openapi.yaml").path]
        try process.run()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
    }
}

/// An operation of an OpenAPI page. The page is read line by line and by its indentation,
/// which is enough for this test.
private struct DescribedOperation {
    struct Route: Hashable {
        var method: String
        var path: String
        var query: Set<String>
    }

    var route: Route
    var tags: Set<String> = []
    var statuses: Set<Int> = []

    static func read(_ page: String) -> [DescribedOperation] {
        let lines = page.split(separator: "\n").map { (line: Substring) -> (Int, Substring) in
            (line.prefix { $0 == " " }.count, line.drop { $0 == " " })
        }
        let shared = parameters(lines)
        var operations: [DescribedOperation] = []
        var (path, ofPath): (String, Set<String>) = ("", [])
        var (name, anchors, anchor): (Substring?, [Substring: Set<Int>], Substring?) = (nil, [:], nil)
        for (depth, text) in lines {
            if depth == 0, text == "components:" { break }
            if depth == 2, text.hasPrefix("/") { (path, ofPath) = (String(text.dropLast()), []) }
            if depth == 4, ["get:", "post:"].contains(text) {
                let route = Route(method: String(text.dropLast()).uppercased(), path: path, query: ofPath)
                operations.append(DescribedOperation(route: route))
            }
            guard let last = operations.indices.last else { continue }
            if depth == 6, text.hasPrefix("tags: [") {
                operations[last].tags = Set(text.dropFirst(7).dropLast().split(separator: ", ").map(String.init))
            }
            if let found = text.wholeMatch(of: /- \$ref: "#\/components\/parameters\/(\w+)"/),
                let parameter = shared[String(found.1)]
            {
                if depth == 6 { ofPath.insert(parameter) } else { operations[last].route.query.insert(parameter) }
            }
            if text.hasPrefix("- name: ") { name = text.dropFirst(8) }
            if text == "in: query", let name { operations[last].route.query.insert(String(name)) }
            if depth == 6, text.hasPrefix("responses:") {
                anchor = text.split(separator: "&").dropFirst().first
                if let other = text.split(separator: "*").dropFirst().first {
                    operations[last].statuses = anchors[other] ?? []
                }
            }
            if depth == 8, let found = text.prefixMatch(of: /"(\d\d\d)":/), let status = Int(found.1) {
                operations[last].statuses.insert(status)
                if let anchor { anchors[anchor, default: []].insert(status) }
            }
        }
        return operations
    }

    /// Returns the names of the shared query parameters, by their keys in the page.
    private static func parameters(_ lines: [(Int, Substring)]) -> [String: String] {
        var (shared, key, name): ([String: String], String, String) = ([:], "", "")
        for (depth, text) in lines {
            if depth == 4, text.hasSuffix(":") { key = String(text.dropLast()) }
            if depth == 6, text.hasPrefix("name: ") { name = String(text.dropFirst(6)) }
            if depth == 6, text == "in: query" { shared[key] = name }
        }
        return shared
    }
}
