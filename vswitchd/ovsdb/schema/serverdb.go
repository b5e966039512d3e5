package schema

// Server is the database _Server: a row for each database of the process.
func Server() *Database {
	return database("_Server", "1.2.0",
		root(table("Database",
			one("name", text),
			one("model", oneOf("standalone", "clustered", "relay")),
			one("connected", flag),
			one("leader", flag),
			maybe("schema", text),
			maybe("cid", id),
			maybe("sid", id),
			maybe("index", number),
		)))
}
