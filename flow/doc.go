// Package flow is the language of the pipeline: fields, keys, matches, actions, flow entries,
// groups and meters, and the text in which ovs-ofctl prints them. That text is a public
// interface: dumps, traces, errors and tests use the one printer here, and the one parser in
// flow/parse.
//
//	table=L3Forwarding, priority=200,ip,nw_dst=10.10.1.0/24 actions=dec_ttl,output:"antrea-tun0"
//
// A match is two Keys, value and mask. The registry has one row for each field; parser, printer,
// matcher, set_field and trace read that row.
//
//	value.go, key.go                a field's value; a packet's fields as flat bytes
//	key_unsafe.go, key_words.go     a key's words, for lookups
//	registry.go, field.go           the list of fields; one of them
//	form.go, form_read.go           how values are printed and read
//	error.go                        errors in texts, with their place and a suggestion
//	names.go, portnumbers.go        names of tables and ports; reserved ports
//	entry.go, action.go             entries, groups and meters; actions
//	match.go, minimatch.go          matches; the short form that entries keep
//	prereq.go                       what a match must imply before a field has a meaning
//	validate.go, bundle.go          the limits of an entry; a change that is applied whole
//	extract.go, compose.go          from a packet to its key, and back
//	diff.go, first.go               differences of two keys; defaults of a packet's description
//	entryfilter.go                  filters of a dump
//	print_match.go, print_action.go matches and actions as text
//	print_openflow10.go             actions in the spelling of OpenFlow 1.0
//	print_entry.go                  entries, groups and meters as text
//	longlines.go                    entries and groups that need several lines
//	json.go                         keys, matches and names as JSON
//
// The text equals that of Open vSwitch 3.1 to the byte, in the form of OpenFlow 1.5 with names.
//
// No type here is safe for concurrent change. Many goroutines may read at once.
package flow
