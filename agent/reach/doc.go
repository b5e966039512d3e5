// Package reach says whether one end may connect to another by flow entries alone. Entries of a
// foreign controller have no objects that antrail knows: no Pods, Services and policies. With
// objects, package agent/pipeline answers.
//
//	entryways.go  the question, and the walks
//	entryends.go  the two ends: address, MAC address and port
//	senders.go    what tells by which port, and with which MAC address, an end sends
//	waytext.go    the answer in words
//
// A walk is dry: nothing is sent, counted or learned. An end whose MAC address is unknown has a
// placeholder. If a table asks for it, the answer is undecided.
package reach
