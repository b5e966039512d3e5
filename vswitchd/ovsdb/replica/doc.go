// Package replica has a copy of a database that another process serves, such as ovsdb-server.
// Transactions of the copy go to that server, as operations of RFC 7047 section 5.2.
//
//	replica.go        the copy, and connections one after the other
//	serversession.go  one connection: requests, replies and updates
//	operations.go     a transaction's changes as operations
//
// The server sends the update of a transaction before its reply. So the copy has the transaction's
// changes when Transact returns, and a following update with the same changes has no effect.
package replica
