// Package replica has a copy of a database that another process serves, such as ovsdb-server.
// Transactions of the copy go to that server, as operations of RFC 7047 section 5.2.
//
//	replica.go        the copy, and connections one after the other
//	serversession.go  one connection: requests, replies and updates
//	operations.go     a transaction's changes as operations
//
// The server tells of a change before it answers the transaction that made it. So the copy has a
// transaction when Transact returns, and the update that comes next changes nothing.
package replica
