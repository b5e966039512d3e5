// Package ledger keeps account of which object wants which entry, group and meter, and of
// what the switch has. A change of what objects want becomes the smallest bundle for the
// switch.
//
//	desired.go       what a part of an object wants, and where each entry comes from
//	nodeside.go      what a part wants of the Node, outside the switch
//	installer.go     a change of the switch, and the switch as control sees it
//	ledger.go        claims of parts, by the identity of entries
//	sharedclause.go  entries that fulfil a clause of many rules
//	ledgerstep.go    a change of claims, and the bundle that it makes
//	owners.go        the owner of an entry, and the entries of an object
//	memoryswitch.go  a switch that only remembers, for dumps and tests
//
// Nothing here is safe for concurrent use.
package ledger
