// Package assignments writes what an agent has assigned to objects to a file for the next agent. It
// has numbers of groups, packet marks and rules, pods' ports, and the Node's side. The switch
// itself keeps the entries with these numbers.
//
//	assignments.go  the file, written and read
package assignments
