import Reel
import ReelCore
import ReelTesting
import TestSupport
import Testing

/// Random edits on two to five devices with random schemas, with cuts, kills, refusals and updates of the app.
struct RandomModelRun {
    private let seed: UInt64
    private let world: TestWorld
    private let devices: [TestDevice]
    private var open: [(any RandomDevice)?]
    private var random: SeededNumbers

    init(seed: UInt64) throws {
        (self.seed, random) = (seed, SeededNumbers(seed))
        world = TestWorld(seed: seed)
        var devices: [TestDevice] = []
        for name in ["ann", "bob", "cy", "dan", "eve"].prefix(2 + random.below(4)) {
            devices.append(try world.device(name))
        }
        (self.devices, open) = (devices, devices.map { _ in nil })
        Builds.shuffle(&random)
    }

    /// Makes the steps, and compares all devices with the checker twice on the way and at the end.
    mutating func run(steps: Int) async throws {
        for _ in 0..<3 {
            for _ in 0..<steps / 3 { try await step() }
            try await check()
        }
    }

    private mutating func step() async throws {
        let index = random.below(devices.count)
        let device = devices[index]
        switch random.below(24) {
        case 0: world.cut(device)
        case 1: world.heal(device)
        case 2:
            device.kill()
            open[index] = nil
        case 3:
            let code = random.pick([ErrorCode.logUnavailable, .overloaded, .forbidden])
            let requests = random.pick(TestRequests.allCases)
            try world.refuse(requests, with: code, of: device, for: .seconds(Int64(1 + random.below(20))))
        case 4...8: await world.advance(.milliseconds(Int64(1 + random.below(2_000))))
        default: try await self.device(index).edit(&random)
        }
    }

    /// Returns a device, on which a random build is started if none runs.
    private mutating func device(_ index: Int) async throws -> any RandomDevice {
        if let device = open[index] { return device }
        let device = devices[index]
        if !device.isRunning { try device.start() }
        let typed: any RandomDevice =
            switch random.below(4) {
            case 0...1: try await TypedDevice<OldBuild>(device, seed: seed)
            case 2: try await TypedDevice<OtherBuild>(device, seed: seed)
            default: try await TypedDevice<NewBuild>(device, seed: seed)
            }
        open[index] = typed
        return typed
    }

    private mutating func check() async throws {
        world.heal()
        for index in devices.indices { _ = try await device(index) }
        try await world.settle()
        let fold = try CheckedFold("todo", of: world)
        for device in open { try await device?.check(fold) }
        // An edit that changes nothing sends nothing.
        for device in open { try await device?.saveNothing() }
        try await world.settle()
        #expect(world.log("todo").count == fold.outcomes.count)
    }
}
