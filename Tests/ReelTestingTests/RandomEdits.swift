import Reel
import ReelClient
import ReelCore
import ReelTesting
import Synchronization
import TestSupport
import Testing

/// Random edits on three devices of a world, with cuts, kills and refusals between them.
struct RandomEdits {
    private let world: TestWorld
    private let devices: [TestDevice]
    private var open: [Dataset?]
    private var random: SeededGenerator

    init(seed: UInt64) throws {
        world = TestWorld(seed: seed)
        let world = world
        devices = try ["ann", "bob", "cy"].map { try world.device($0) }
        open = devices.map { _ in nil }
        random = SeededGenerator(seed: seed)
    }

    mutating func run(steps: Int) async throws {
        for _ in 0..<steps {
            let index = Int.random(in: devices.indices, using: &random)
            let device = devices[index]
            switch Int.random(in: 0..<20, using: &random) {
            case 0: world.cut(device)
            case 1: world.heal(device)
            case 2:
                device.kill()
                open[index] = nil
            case 3:
                let code = [ErrorCode.logUnavailable, .overloaded, .forbidden].randomElement(using: &random)
                let requests = TestRequests.allCases.randomElement(using: &random)
                if let code, let requests {
                    let seconds = Int64.random(in: 1...20, using: &random)
                    try world.refuse(requests, with: code, of: device, for: .seconds(seconds))
                }
            case 4...8: await world.advance(.milliseconds(Int64.random(in: 1...2_000, using: &random)))
            default: try await edit(try await dataset(index))
            }
        }
        world.heal()
        for index in devices.indices { _ = try await dataset(index) }
        try await world.settle()
        let states = try open.map { try $0?.objects(of: TodoTask.self).values }
        #expect(states[0] == states[1] && states[1] == states[2])
        // Each edit is applied or rejected once.
        for event in world.log("todo") {
            switch event.outcome {
            case .applied, .rejected, .duplicate: break
            default: Issue.record("\(event)")
            }
        }
    }

    private mutating func dataset(_ index: Int) async throws -> Dataset {
        if let dataset = open[index] { return dataset }
        if !devices[index].isRunning { try devices[index].start() }
        let dataset = try await devices[index].client.open("todo", models: [TodoTask.self])
        open[index] = dataset
        return dataset
    }

    private mutating func edit(_ todo: Dataset) async throws {
        let id = ModelID<TodoTask>("\(Int.random(in: 0..<6, using: &random))")
        let (kind, number) = (Int.random(in: 0..<8, using: &random), Int.random(in: 0..<100, using: &random))
        do {
            switch kind {
            case 0...1: try await todo.insert(TodoTask(id: id, title: "\(number)"))
            case 2: try await todo.delete(id)
            case 3: try await todo.update(id) { $0.votes += number }
            case 4: try await todo.update(id) { $0.tags.formSymmetricDifference(["\(number % 5)"]) }
            case 5: try await todo.update(id) { $0.note = "\(number)" + $0.note.dropFirst(number % 3) }
            default: try await todo.update(id) { $0.title = "\(number)" }
            }
        } catch let error as ReelError where [.noObject, .deleted].contains(error.code) {
            // Another edit has deleted the object.
        }
    }
}

/// A number that any thread can increase.
final class Counter: Sendable {
    private let number = Mutex(0)

    var count: Int { number.withLock { $0 } }
    func add() { number.withLock { $0 += 1 } }
}
