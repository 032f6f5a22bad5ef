/// The place at which a snapshot or delta was cut. The reader holds everything up to one object as of one seq, and
/// everything beyond that object as of an earlier seq, or not at all. Beyond it are all later lines: the objects after
/// this object, and the tombstones.
public struct SnapshotCut: Hashable, Sendable {
    /// The key of the last object that was read, as `Fold.key(ofObject:)` returns it.
    public let key: [UInt8]
    /// The seq as of which the reader holds everything beyond the object; −1: it holds nothing of that.
    public let beyond: Seq

    /// Creates a cut after an object, which need not exist. Nil if no object can have this model and this id.
    ///
    /// - Parameters:
    ///   - model: the model of the last object that was read.
    ///   - id: the id of that object.
    ///   - beyond: the seq as of which the reader holds everything beyond the object; −1: it holds nothing of that.
    public init?(model: String, id: String, beyond: Seq = .none) {
        for name in [model, id] {
            guard (1...Limits.name).contains(name.utf8.count), !name.utf8.contains(where: { $0 < 0x20 }) else {
                return nil
            }
        }
        key = Fold.key(model: model, id: id)
        self.beyond = beyond
    }

    /// Creates a cut after the object with this key, as `Fold.key(ofObject:)` returns it.
    package init(key: [UInt8], beyond: Seq = .none) {
        self.key = key
        self.beyond = beyond
    }

    /// The model and the id of the last object that was read.
    public var name: (model: String, id: String) {
        Fold.split(key) { (JSONText($0).string, JSONText($1).string) }
    }

    /// Returns true if the lines of objects continue beyond the cut at the object with this key.
    package func isPassed(by other: [UInt8]) -> Bool {
        key.withUnsafeBytes { key in other.withUnsafeBytes { NameOrder.bytes(key, $0) < 0 } }
    }
}
