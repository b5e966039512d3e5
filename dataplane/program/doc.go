// Package program compiles flow entries, groups and meters into the pipeline that packets walk. A
// bundle makes the next program from the present one. A bundle with an invalid entry is refused
// whole, and the error names the invalid entries.
//
//	compile.go       actions and entries as packets run them
//	learnactions.go  the entries that learn actions make, and their removal
//	visit.go         all actions of an entry or a bundle
//	counts.go        the counts of a worker's batch, before they are published
//	group.go         select groups: buckets by weight, with their counters
//	meter.go         token buckets
//	numbered.go      groups and meters by number, shared from program to program
//	flowlabel.go     whether an entry reads IPv6's flow label
//	program.go       the next program, from a program and a bundle
//	validate.go      checks that need the whole program
//
// A Program is immutable. Packets write only counters and learned entries, which the next program
// shares.
package program
