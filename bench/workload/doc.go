// Package workload is what switches are measured with: packets between two pods, and the programs
// that these packets pass.
//
//	programs.go        the examples' programs, and a single entry
//	policyload.go      a program with many rules of policies
//	serviceload.go     a program with many Services
//	programload.go     programs beside Antrea's
//	antreaforms.go     Antrea's program on external Nodes, and beside another CNI
//	packets.go         packets of known and new connections
//	servicepackets.go  packets to a ClusterIP
package workload
