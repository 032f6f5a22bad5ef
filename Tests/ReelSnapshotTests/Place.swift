import Testing

@Suite struct ReelSnapshotPlace {}
