package openflow

import "fmt"

// ErrorKind is an error of OpenFlow. Its numbers depend on the version.
type ErrorKind uint8

// The errors that a switch of this package sends. Their names are those of the OpenFlow
// specification, section "Error message".
const (
	HelloIncompatible ErrorKind = iota
	BadVersion
	BadType
	BadMultipart
	BadExperimenter
	BadExperimenterType
	RequestNotPermitted
	BadLength
	BufferUnknown
	BadTableID
	IsSlave
	BadPort
	BadActionType
	BadActionLength
	BadActionExperimenter
	BadActionExperimenterType
	BadOutPort
	BadActionArgument
	BadOutGroup
	MatchInconsistent
	BadActionSetType
	BadActionSetLength
	BadActionSetArgument
	UnknownInstruction
	UnsupportedInstruction
	BadInstructionTable
	BadInstructionLength
	DuplicateInstruction
	BadMatchType
	BadMatchLength
	BadWildcards
	BadField
	BadValue
	BadMask
	BadPrerequisite
	DuplicateField
	FlowModUnknown
	TableFull
	FlowOverlap
	FlowBadCommand
	FlowBadFlags
	GroupExists
	InvalidGroup
	OutOfGroups
	WatchUnsupported
	UnknownGroup
	GroupBadType
	GroupBadCommand
	BadBucket
	BadWatch
	UnknownBucket
	BucketExists
	PortModBadPort
	PortModBadHWAddr
	PortModBadConfig
	PortModNotPermitted
	AsyncConfigUnsupported
	TableFeaturesNotPermitted
	QueueBadPort
	BadQueue
	ConfigBadFlags
	BadRole
	StaleRole
	MeterUnknown
	MeterExists
	InvalidMeter
	UnknownMeter
	MeterBadCommand
	MeterBadFlags
	MeterBadRate
	MeterBadBand
	BadPropertyType
	BadPropertyLength
	BadPropertyValue
	BundleUnknown
	BundleBadID
	BundleExists
	BundleClosed
	OutOfBundles
	BundleBadType
	BundleBadFlags
	BundleBadLength
	BundleBadXID
	BundleMessageUnsupported
	BundleMessageFailed
	BundleTooMany
	NotConfigured
	MonitorExists
	MonitorBadCommand
	MonitorBadFlags
	MonitorUnknown
	TLVBadCommand
	TLVBadSize
	TLVBadIndex
	TLVTableFull
	TLVAlreadyMapped
	TLVDuplicate
	TLVInUse
	NoTLVField
	PipelineFieldsOnly
	numErrorKinds
)

// code is an error's numbers in one version. vendor is 0 for the standard's own.
type code struct {
	vendor   uint32
	kind, no uint16
}

// errorRow is an error with its name as ovs-ofctl prints it, and its numbers.
type errorRow struct {
	name     string
	v10, v13 code
}

// unencodable is what Open vSwitch sends in OpenFlow 1.0 for an error that only later
// versions have.
var unencodable = code{nicira, 1, 521}

// both is the row of an error with the same numbers in all versions.
func both(name string, kind, no uint16) errorRow {
	return errorRow{name, code{0, kind, no}, code{0, kind, no}}
}

// vendor10 is the row of an error that has Nicira's numbers in OpenFlow 1.0.
func vendor10(name string, kind10, no10, kind, no uint16) errorRow {
	return errorRow{name, code{nicira, kind10, no10}, code{0, kind, no}}
}

// since13 is the row of an error that OpenFlow 1.0 lacks.
func since13(name string, kind, no uint16) errorRow {
	return errorRow{name, unencodable, code{0, kind, no}}
}

// same10 is the row of an error that has the same numbers in OpenFlow 1.0, but as Nicira's.
func same10(name string, kind, no uint16) errorRow {
	return errorRow{name, code{nicira, kind, no}, code{0, kind, no}}
}

// nicirasOwn is the row of an error that is Nicira's in all versions.
func nicirasOwn(name string, no10, kind uint16) errorRow {
	return errorRow{name, code{nicira, 1, no10}, code{nicira, kind, 0}}
}

var errorRows = [numErrorKinds]errorRow{
	HelloIncompatible:         both("OFPHFC_INCOMPATIBLE", 0, 0),
	BadVersion:                both("OFPBRC_BAD_VERSION", 1, 0),
	BadType:                   both("OFPBRC_BAD_TYPE", 1, 1),
	BadMultipart:              both("OFPBRC_BAD_STAT", 1, 2),
	BadExperimenter:           both("OFPBRC_BAD_VENDOR", 1, 3),
	BadExperimenterType:       both("OFPBRC_BAD_SUBTYPE", 1, 4),
	RequestNotPermitted:       both("OFPBRC_EPERM", 1, 5),
	BadLength:                 both("OFPBRC_BAD_LEN", 1, 6),
	BufferUnknown:             both("OFPBRC_BUFFER_UNKNOWN", 1, 8),
	BadTableID:                vendor10("OFPBRC_BAD_TABLE_ID", 1, 512, 1, 9),
	IsSlave:                   since13("OFPBRC_IS_SECONDARY", 1, 10),
	BadPort:                   vendor10("OFPBRC_BAD_PORT", 1, 514, 1, 11),
	BadActionType:             both("OFPBAC_BAD_TYPE", 2, 0),
	BadActionLength:           both("OFPBAC_BAD_LEN", 2, 1),
	BadActionExperimenter:     both("OFPBAC_BAD_VENDOR", 2, 2),
	BadActionExperimenterType: both("OFPBAC_BAD_VENDOR_TYPE", 2, 3),
	BadOutPort:                both("OFPBAC_BAD_OUT_PORT", 2, 4),
	BadActionArgument:         both("OFPBAC_BAD_ARGUMENT", 2, 5),
	BadOutGroup:               same10("OFPBAC_BAD_OUT_GROUP", 2, 9),
	MatchInconsistent:         vendor10("OFPBAC_MATCH_INCONSISTENT", 1, 522, 2, 10),
	BadActionSetType:          vendor10("OFPBAC_BAD_SET_TYPE", 1, 523, 2, 13),
	BadActionSetLength:        vendor10("OFPBAC_BAD_SET_LEN", 1, 524, 2, 14),
	BadActionSetArgument:      vendor10("OFPBAC_BAD_SET_ARGUMENT", 1, 525, 2, 15),
	UnknownInstruction:        since13("OFPBIC_UNKNOWN_INST", 3, 0),
	UnsupportedInstruction:    vendor10("OFPBIC_UNSUP_INST", 2, 257, 3, 1),
	BadInstructionTable:       since13("OFPBIC_BAD_TABLE_ID", 3, 2),
	BadInstructionLength:      since13("OFPBIC_BAD_LEN", 3, 7),
	DuplicateInstruction:      since13("OFPBIC_DUP_INST", 3, 9),
	BadMatchType:              vendor10("OFPBMC_BAD_TYPE", 1, 257, 4, 0),
	BadMatchLength:            vendor10("OFPBMC_BAD_LEN", 1, 256, 4, 1),
	BadWildcards:              vendor10("OFPBMC_BAD_WILDCARDS", 1, 262, 4, 5),
	BadField:                  vendor10("OFPBMC_BAD_FIELD", 0, 263, 4, 6),
	BadValue:                  vendor10("OFPBMC_BAD_VALUE", 1, 258, 4, 7),
	BadMask:                   vendor10("OFPBMC_BAD_MASK", 1, 259, 4, 8),
	BadPrerequisite:           vendor10("OFPBMC_BAD_PREREQ", 1, 260, 4, 9),
	DuplicateField:            vendor10("OFPBMC_DUP_FIELD", 1, 261, 4, 10),
	FlowModUnknown:            {"OFPFMFC_UNKNOWN", code{0, 3, 5}, code{0, 5, 0}},
	TableFull:                 {"OFPFMFC_TABLE_FULL", code{0, 3, 0}, code{0, 5, 1}},
	FlowOverlap:               {"OFPFMFC_OVERLAP", code{0, 3, 1}, code{0, 5, 3}},
	FlowBadCommand:            {"OFPFMFC_BAD_COMMAND", code{0, 3, 4}, code{0, 5, 6}},
	FlowBadFlags:              vendor10("OFPFMFC_BAD_FLAGS", 3, 258, 5, 7),
	GroupExists:               same10("OFPGMFC_GROUP_EXISTS", 6, 0),
	InvalidGroup:              same10("OFPGMFC_INVALID_GROUP", 6, 1),
	OutOfGroups:               same10("OFPGMFC_OUT_OF_GROUPS", 6, 3),
	WatchUnsupported:          same10("OFPGMFC_WATCH_UNSUPPORTED", 6, 6),
	UnknownGroup:              same10("OFPGMFC_UNKNOWN_GROUP", 6, 8),
	GroupBadType:              same10("OFPGMFC_BAD_TYPE", 6, 10),
	GroupBadCommand:           same10("OFPGMFC_BAD_COMMAND", 6, 11),
	BadBucket:                 same10("OFPGMFC_BAD_BUCKET", 6, 12),
	BadWatch:                  same10("OFPGMFC_BAD_WATCH", 6, 13),
	UnknownBucket:             same10("OFPGMFC_UNKNOWN_BUCKET", 6, 15),
	BucketExists:              same10("OFPGMFC_BUCKET_EXISTS", 6, 16),
	PortModBadPort:            {"OFPPMFC_BAD_PORT", code{0, 4, 0}, code{0, 7, 0}},
	PortModBadHWAddr:          {"OFPPMFC_BAD_HW_ADDR", code{0, 4, 1}, code{0, 7, 1}},
	PortModBadConfig:          {"OFPPMFC_BAD_CONFIG", unencodable, code{0, 7, 2}},
	AsyncConfigUnsupported:    {"OFPACFC_UNSUPPORTED", unencodable, code{0, 15, 1}},
	PortModNotPermitted:       {"OFPPMFC_EPERM", unencodable, code{0, 7, 4}},
	TableFeaturesNotPermitted: since13("OFPTFFC_EPERM", 13, 5),
	QueueBadPort:              {"OFPQOFC_BAD_PORT", code{0, 5, 0}, code{0, 9, 0}},
	BadQueue:                  {"OFPQOFC_BAD_QUEUE", code{0, 5, 1}, code{0, 9, 1}},
	ConfigBadFlags:            since13("OFPSCFC_BAD_FLAGS", 10, 0),
	BadRole:                   vendor10("OFPRRFC_BAD_ROLE", 1, 513, 11, 2),
	StaleRole:                 since13("OFPRRFC_STALE", 11, 0),
	MeterUnknown:              since13("OFPMMFC_UNKNOWN", 12, 0),
	MeterExists:               since13("OFPMMFC_METER_EXISTS", 12, 1),
	InvalidMeter:              since13("OFPMMFC_INVALID_METER", 12, 2),
	UnknownMeter:              since13("OFPMMFC_UNKNOWN_METER", 12, 3),
	MeterBadCommand:           since13("OFPMMFC_BAD_COMMAND", 12, 4),
	MeterBadFlags:             since13("OFPMMFC_BAD_FLAGS", 12, 5),
	MeterBadRate:              since13("OFPMMFC_BAD_RATE", 12, 6),
	MeterBadBand:              since13("OFPMMFC_BAD_BAND", 12, 8),
	BadPropertyType:           since13("OFPBPC_BAD_TYPE", 14, 0),
	BadPropertyLength:         since13("OFPBPC_BAD_LEN", 14, 1),
	BadPropertyValue:          since13("OFPBPC_BAD_VALUE", 14, 2),
	BundleUnknown:             since13("OFPBFC_UNKNOWN", 17, 0),
	BundleBadID:               since13("OFPBFC_BAD_ID", 17, 2),
	BundleExists:              since13("OFPBFC_BUNDLE_EXIST", 17, 3),
	BundleClosed:              since13("OFPBFC_BUNDLE_CLOSED", 17, 4),
	OutOfBundles:              since13("OFPBFC_OUT_OF_BUNDLES", 17, 5),
	BundleBadType:             since13("OFPBFC_BAD_TYPE", 17, 6),
	BundleBadFlags:            since13("OFPBFC_BAD_FLAGS", 17, 7),
	BundleBadLength:           since13("OFPBFC_MSG_BAD_LEN", 17, 8),
	BundleBadXID:              since13("OFPBFC_MSG_BAD_XID", 17, 9),
	BundleMessageUnsupported:  since13("OFPBFC_MSG_UNSUP", 17, 10),
	BundleTooMany:             since13("OFPBFC_MSG_TOO_MANY", 17, 12),
	BundleMessageFailed:       since13("OFPBFC_MSG_FAILED", 17, 13),
	NotConfigured:             {"NXST_NOT_CONFIGURED", code{nicira, 1, 535}, code{nicira, 36, 0}},
	MonitorExists:             {"OFPMOFC_MONITOR_EXISTS", code{nicira, 1, 517}, code{0, 16, 1}},
	MonitorBadFlags:           {"OFPMOFC_BAD_FLAGS", code{nicira, 1, 518}, code{0, 16, 5}},
	MonitorUnknown:            {"OFPMOFC_UNKNOWN_MONITOR", code{nicira, 1, 519}, code{0, 16, 3}},
	TLVBadCommand:             nicirasOwn("NXTTMFC_BAD_COMMAND", 527, 16),
	TLVBadSize:                nicirasOwn("NXTTMFC_BAD_OPT_LEN", 528, 17),
	TLVBadIndex:               nicirasOwn("NXTTMFC_BAD_FIELD_IDX", 529, 18),
	TLVTableFull:              nicirasOwn("NXTTMFC_TABLE_FULL", 530, 19),
	TLVAlreadyMapped:          nicirasOwn("NXTTMFC_ALREADY_MAPPED", 531, 20),
	TLVDuplicate:              nicirasOwn("NXTTMFC_DUP_ENTRY", 532, 21),
	TLVInUse:                  nicirasOwn("NXTTMFC_INVALID_TLV_DEL", 537, 38),
	NoTLVField:                nicirasOwn("NXFMFC_INVALID_TLV_FIELD", 536, 37),
	PipelineFieldsOnly:        since13("OFPBRC_PIPELINE_FIELDS_ONLY", 1, 17),
	MonitorBadCommand:         since13("OFPMOFC_BAD_COMMAND", 16, 4),
}

// monitors13 are the errors of flow monitors in OpenFlow 1.3, which are Nicira's.
var monitors13 = map[ErrorKind]uint16{MonitorExists: 6, MonitorBadFlags: 7, MonitorUnknown: 8}

// Error is the error of a request: a kind whose numbers the peer gets, and a message for the log.
type Error struct {
	Kind ErrorKind
	Msg  string
}

// Error is the name of the kind and the sentence.
func (e *Error) Error() string { return errorRows[e.Kind].name + ": " + e.Msg }

// fail makes an Error.
func fail(kind ErrorKind, format string, args ...any) error {
	return &Error{kind, fmt.Sprintf(format, args...)}
}

// Fail makes an error of a kind for a well-formed request that a switch refuses.
func Fail(kind ErrorKind, format string, args ...any) error { return fail(kind, format, args...) }

// String is the name as ovs-ofctl prints it.
func (k ErrorKind) String() string { return errorRows[k].name }

// bundleFailed is the type of errors of bundles in OpenFlow 1.4, and what ONF's extension adds
// to their codes in OpenFlow 1.3.
const (
	bundleFailed    = 17
	bundleExtension = 2300
)

// late are errors that a version later than 1.3 has introduced, with their substitutes in earlier
// versions.
var late = map[ErrorKind]struct {
	since   Version
	instead ErrorKind
}{
	DuplicateInstruction: {V14, UnknownInstruction}, UnknownBucket: {V15, BadBucket}, BucketExists: {V15, BadBucket},
	AsyncConfigUnsupported: {V14, BadType}, BadPropertyType: {V14, BadLength}, PipelineFieldsOnly: {V15, BadField}, MonitorBadCommand: {V14, BadMultipart}, BadPropertyLength: {V14, BadLength}, BadPropertyValue: {V14, BadLength},
}

// sentAs is the error that is sent for k in a version.
func (k ErrorKind) sentAs(v Version) ErrorKind {
	if l, ok := late[k]; ok && v < l.since && v != V10 {
		return l.instead
	}
	return k
}

// codeIn is the error's numbers in a version.
func (k ErrorKind) codeIn(v Version) code {
	row := errorRows[k.sentAs(v)]
	if no := monitors13[k]; v == V13 && no != 0 {
		return code{nicira, no, 0}
	}
	switch {
	case v == V10:
		return row.v10
	case v == V13 && row.v13.vendor == 0 && row.v13.kind == bundleFailed:
		return code{onf, bundleExtension + row.v13.no, 0}
	}
	return row.v13
}

// errorData is the most bytes of a refused message that an error carries. OpenFlow requires at least
// 64.
const errorData = maxMessage - headerSize - 12

// vendorError10 is the type of an error with a vendor's numbers in OpenFlow 1.0.
const vendorError10 = 0xb0c2

// ErrorReply is an OFPT_ERROR.
type ErrorReply struct {
	Kind ErrorKind
	// Data is the refused message, or a text for HelloIncompatible.
	Data []byte
}

// encode implements Body.
func (e *ErrorReply) encode(w *writer, v Version) error {
	switch c := e.Kind.codeIn(v); {
	case c.vendor == 0:
		w.u16(c.kind)
		w.u16(c.no)
	case v == V10:
		w.u16(vendorError10)
		w.u16(0)
		w.u32(c.vendor)
		w.u16(c.kind)
		w.u16(c.no)
	default:
		w.u16(0xffff)
		w.u16(c.kind)
		w.u32(c.vendor)
	}
	w.bytes(e.Data[:min(len(e.Data), errorData)])
	return nil
}
