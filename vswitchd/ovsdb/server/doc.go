// Package server speaks OVSDB (RFC 7047 section 4, and the additions of ovsdb-server(7)) with
// clients such as ovs-vsctl, antrea-agent and ovn-controller.
//
//   - clients.go: listeners, connections and the limits of a client.
//   - client.go: a client's connection, and its requests.
//   - transact.go: transactions, and those that wait for rows.
//   - monitors.go: which rows and columns a client watches.
//   - updates.go: changes of rows in the three dialects of monitors.
//   - locks.go: the locks that clients hold.
//   - databases.go: the databases, and _Server, which lists them.
//   - peer.go: the other end of a connection, which may not read.
//
// Goroutines: two for each connection, which read and write, and one for each transaction that
// waits. The database's lock orders updates and replies: the update of a transaction is in the
// outbox before its reply.
//
// A client has limits (Limits): the bytes of a message, unread bytes in its outbox, monitors, locks
// and waiting transactions. A client that asks for more gets an error. A client that does not read
// its updates is disconnected.
package server
