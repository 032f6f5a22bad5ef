import Reel

/// A lamp with two switches.
struct Light: Model {
    let id: ID
    /// Absolute: the last write wins. Two people who switch the lamp on leave it on.
    var isOn = false
    /// Relative: each press counts. Two people who press at the same time leave the lamp as it was.
    var presses = 0

    init(id: ID) { self.id = id }

    static let schema = Schema<Light>("light") {
        Field("on", \.isOn)
        Counter("presses", \.presses)
    }

    /// The lamp of this example. It exists on each device from the first write on.
    static let hall: ID = "hall"

    /// True if the lamp shines according to its button.
    var isLit: Bool { presses.isMultiple(of: 2) == false }
}
