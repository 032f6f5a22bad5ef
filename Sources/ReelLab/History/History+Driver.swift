public import ReelCore

/// What the one who drives a run sees and does.
extension History {
    /// Something was done to a part of the cluster, and how it showed that it took effect.
    public func fault(_ what: String, on target: String, proof: String) {
        write("fault") { line in
            line.member("what", what)
            line.member("target", target)
            line.member("proof", proof)
        }
    }

    /// From now on nothing is broken any more: what is not done at the end is stuck.
    public func healed() {
        write("heal") { _ in }
    }

    /// A node, or a client that folds, says what the state of the stream is as of this seq.
    public func state(_ stream: StreamName, _ epoch: Epoch, seq: Seq, digest: String, of party: String) {
        write("state") { line in
            line.member("stream", stream.description)
            line.member("epoch", epoch.description)
            line.member("seq", seq)
            line.member("digest", digest)
            line.member("of", party)
        }
    }

    /// A node says which seqs of a partition can be read there.
    public func head(partition: Int, _ epoch: Epoch, first: Seq, head: Seq, of node: String) {
        write("head") { line in
            line.member("epoch", epoch.description)
            line.member("partition", partition)
            line.member("first", first)
            line.member("head", head)
            line.member("of", node)
        }
    }
}
