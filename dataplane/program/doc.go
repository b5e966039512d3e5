// Package program compiles flow entries, groups and meters into the pipeline that packets
// walk. A bundle makes the next program out of the present one. It is validated whole, and
// refused whole with the entries that are wrong.
//
//	compile.go       actions and entries as packets run them
//	learnactions.go  the entry that a learn action makes, and what goes with its maker
//	visit.go         all actions of an entry or a bundle
//	counts.go        what a worker's batch has counted, before it is published
//	group.go         select groups: buckets by weight, with their counters
//	meter.go         token buckets
//	numbered.go      groups and meters by number, shared from program to program
//	flowlabel.go     whether an entry reads IPv6's flow label
//	program.go       the program that a bundle makes of another
//	validate.go      what only the whole program can tell
//
// A Program never changes. Packets write counters and learned entries only, which go on from
// one program to the next.
package program
