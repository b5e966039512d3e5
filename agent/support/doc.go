// Package support writes the archive that a person who helps asks for: what an agent or a switch
// answers, its configuration without secrets, its log, and what would become now of the packets that
// were dropped last.
//
//	support.go  an archive, from the first question to the last byte
//	ask.go      the questions to the agent or switch
//	redact.go   names and addresses that are replaced
//	namemapping.go which names there are
//	addressmapping.go addresses that keep their prefixes
//	archive.go  the files of an archive
package support
