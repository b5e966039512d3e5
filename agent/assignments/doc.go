// Package assignments is a file of an agent's assignments to objects, for the next agent. It has
// numbers of groups, packet marks and rules, pods' ports, and the Node's side. The switch
// itself keeps the entries with these numbers.
//
//	assignments.go  the file, written and read
package assignments
