// Package schema has the tables and columns of the databases that antrail serves, as Go
// tables. It writes them for clients as JSON (RFC 7047 section 3.2).
//
//   - schema.go: databases, tables and columns, and looking them up.
//   - columns.go: functions that make the tables below.
//   - openvswitch.go: Open_vSwitch, the configuration of a switch.
//   - openvswitch_export.go: its tables of mirrors and of exports of flows.
//   - serverdb.go: _Server, which lists the databases for clients.
//
// Names and types are an interface, because Open vSwitch's clients read and write these columns. The
// columns are those of Open vSwitch 3.1 and of 4.0 together. A test compares them with the schema of
// a Debian package.
package schema
