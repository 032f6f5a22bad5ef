import Testing

@testable import reel

/// Settings of a node that cannot be meant.
@Suite struct ServingSettingTests {
    private func check(_ words: [String]) throws {
        let parser = ArgumentParser(commands: CommandTable.all, environment: [:])
        guard case .run(_, let options) = try parser.request(["gateway"] + words) else { return }
        _ = try GatewayArguments.settings(options)
    }

    @Test func aMemoryLimitBelowWhatTheProcessHasIsRefused() throws {
        let error = #expect(throws: Complaint.self) { try check(["--memory-bytes", "1000"]) }
        #expect(error?.code == .usage)
        #expect(error?.message.hasPrefix("--memory-bytes is 1000, and the process has ") == true)
        try check(["--memory-bytes", "1000000000000"])
        try check([])
    }
}
