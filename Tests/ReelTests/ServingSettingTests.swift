import ReelNode
import Testing

@testable import ReelTool

/// Tests combinations of a node's settings that make no sense.
@Suite struct ServingSettingTests {
    private func check(_ words: [String]) throws {
        let parser = ArgumentParser(commands: CommandTable.all, environment: [:])
        guard case .run(_, let options) = try parser.request(["gateway"] + words) else { return }
        _ = try GatewayArguments.settings(options)
    }

    @Test("an operator's port beyond the loopback needs keys, or a word that it is meant")
    func adminListen() throws {
        let words = ["--admin-listen", "0.0.0.0:0"]
        let error = #expect(throws: CommandError.self) { try check(words) }
        #expect(error?.code == .usage && error?.message.contains("expected is --jwks FILE, or --insecure") == true)
        try check(words + ["--insecure"])
        try check(["--admin-listen", "[::1]:0"])
        let parser = ArgumentParser(commands: CommandTable.all, environment: ["REEL_ADMIN_LISTEN": "127.0.0.1:7360"])
        guard case .run(_, let options) = try parser.request(["snapshot"]) else { return }
        #expect(try ServingArguments.nodeSettings(options).adminListen == "127.0.0.1:7360")
    }

    @Test("a memory limit below what the process has is refused") func aMemoryLimitBelow() throws {
        let error = #expect(throws: CommandError.self) { try check(["--memory-max-bytes", "1000"]) }
        #expect(error?.code == .usage)
        #expect(error?.message.hasPrefix("--memory-max-bytes is 1000, but the process already uses ") == true)
        try check(["--memory-max-bytes", "1000000000000"])
        try check([])
    }
}
