PRAGMA user_version = 1;
CREATE TABLE stream (row INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
    site TEXT NOT NULL, next_op INTEGER NOT NULL,
    epoch TEXT, partition INTEGER, partitions INTEGER, covered TEXT);
INSERT INTO stream VALUES (1, 's', 'fad6e246-7125-4235-9b1a-399b7fc87089', 2, '0000000000000001', 0, 1, '0-4');
INSERT INTO stream VALUES (2, 't', '3281e442-4633-455c-877f-0d0d132ddd4e', 1, '0000000000000001', 0, 1, '0-4');
INSERT INTO stream VALUES (3, 'u', '57bb9081-b9ad-4060-a031-b6e88887a1e2', 0, NULL, NULL, NULL, NULL);
CREATE TABLE outbox (stream INTEGER NOT NULL, number INTEGER NOT NULL,
    event BLOB NOT NULL, site TEXT, op INTEGER, PRIMARY KEY (stream, number)) WITHOUT ROWID;
INSERT INTO outbox VALUES (1, 2, CAST('{"base":4,"fields":{"title":"on its way"},"id":"0","model":"m","type":"update"}' AS BLOB), 'fad6e246-7125-4235-9b1a-399b7fc87089', 1);
INSERT INTO outbox VALUES (1, 3, CAST('{"base":4,"fields":{"done":false},"id":"new","model":"m","type":"insert"}' AS BLOB), NULL, NULL);
INSERT INTO outbox VALUES (1, 4, CAST('{"base":4,"id":"own","model":"m","ops":{"text":{"splice":[[5,0," word"]]}},"type":"update"}' AS BLOB), NULL, NULL);
INSERT INTO outbox VALUES (1, 5, CAST('{"base":4,"fields":{"count":2},"id":"own","if":{"count":4},"model":"m","type":"update"}' AS BLOB), NULL, NULL);
INSERT INTO outbox VALUES (1, 6, CAST('{"base":4,"events":[{"id":"2","model":"m","type":"delete"},{"fields":{"title":"batch"},"id":"1","model":"m","type":"update"}],"type":"batch"}' AS BLOB), NULL, NULL);
INSERT INTO outbox VALUES (3, 1, CAST('{"base":-1,"id":"unsent","model":"m","type":"insert"}' AS BLOB), NULL, NULL);
CREATE TABLE state (stream INTEGER NOT NULL, piece INTEGER NOT NULL,
    lines BLOB NOT NULL, PRIMARY KEY (stream, piece)) WITHOUT ROWID;
INSERT INTO state VALUES (1, 0, CAST('{"after":-1,"consumed":3,"epoch":"0000000000000001","fold":1,"marks":[],"partition":0,"seq":2,"sites":["b5d8c850-3fa2-47b1-b644-c4e27c7aaa79"],"stream":"s"}
{"by":"ann","end":-1,"op":2,"r":-1,"seq":2,"site":0}
{"fields":{},"object":["m","0"],"seq":0}
{"fields":{},"object":["m","1"],"seq":1}
{"fields":{},"object":["m","2"],"seq":2}
{"count":4,"digest":"f824e34bda87c141","end":true}
' AS BLOB));
CREATE TABLE event (stream INTEGER NOT NULL, seq INTEGER NOT NULL,
    value BLOB NOT NULL, PRIMARY KEY (stream, seq)) WITHOUT ROWID;
INSERT INTO event VALUES (1, 4, CAST('{"at":7,"base":3,"by":"ann","fields":{"count":1,"text":"first"},"id":"own","model":"m","op":0,"site":"fad6e246-7125-4235-9b1a-399b7fc87089","type":"insert"}' AS BLOB));
INSERT INTO event VALUES (2, 3, CAST('{"at":7,"base":2,"by":"ann","fields":{"text":"one"},"id":"1","model":"n","op":0,"site":"3281e442-4633-455c-877f-0d0d132ddd4e","type":"insert"}' AS BLOB));
CREATE TABLE log (row INTEGER PRIMARY KEY, number INTEGER NOT NULL);
INSERT INTO log VALUES (1, 3);
