package openflow

import (
	"encoding/binary"
	"io"
	"slices"
)

// Experimenters (vendors) whose messages, actions and errors this package knows.
const (
	nicira = 0x00002320
	onf    = 0x4f4e4600
)

const experimenterKind = 0xffff

// headerSize is the size of a message's header, and maxMessage that of the largest message.
const (
	headerSize = 8
	maxMessage = 65535
)

// Message is one message. Version and XID are those of its header.
type Message struct {
	Version Version
	XID     uint32
	Body    Body
}

// Body is the body of a message: a pointer to one of the structs of this package.
type Body interface{}

// encoder is a Body that a switch sends.
type encoder interface {
	encode(w *writer, v Version) error
}

// Read reads the bytes of one message, at most 64 kB. It writes them into b, or into new memory if b
// is too small. The error is io.EOF between messages, or a *Error for an invalid header.
func Read(from io.Reader, b []byte) ([]byte, error) {
	if cap(b) < headerSize {
		b = make([]byte, 0, 128)
	}
	b = b[:headerSize]
	if _, err := io.ReadFull(from, b); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(b[2:]))
	if n < headerSize {
		return nil, fail(BadLength, "a message of %d bytes is shorter than its header", n)
	}
	b = slices.Grow(b, n-headerSize)[:n]
	_, err := io.ReadFull(from, b[headerSize:])
	return b, err
}

// XID is the transaction of a message's bytes.
func XID(b []byte) uint32 { return binary.BigEndian.Uint32(b[4:]) }

// VersionOf is the version of a message's bytes.
func VersionOf(b []byte) Version { return Version(b[0]) }

// Decode reads one message, which must be exactly b. The error is a *Error; m then has the Version
// and XID of a complete header.
func Decode(b []byte) (m Message, err error) {
	if len(b) < headerSize {
		return m, fail(BadLength, "a message of %d bytes is shorter than its header", len(b))
	}
	m.Version, m.XID = Version(b[0]), XID(b)
	if n := int(binary.BigEndian.Uint16(b[2:])); n != len(b) {
		return m, fail(BadLength, "the header has length %d, and the message has %d bytes", n, len(b))
	}
	r := &reader{b: b[headerSize:]}
	if b[1] == typeHello {
		m.Body, err = decodeHello(r, m.Version)
		return m, err
	}
	if !m.Version.known() {
		return m, fail(BadVersion, "version %d is none of %v", m.Version, Versions)
	}
	m.Body, err = decodeBody(r, m.Version, b[1])
	if r.short { // other errors follow from that
		err = r.done()
	}
	if err != nil {
		m.Body = nil
	}
	return m, err
}

// Message types that are the same in all versions.
const (
	typeHello         = 0
	typeError         = 1
	typeEchoRequest   = 2
	typeEchoReply     = 3
	typeExperimenter  = 4
	typeFeatures      = 5
	typeFeaturesReply = 6
	typeGetConfig     = 7
	typeConfigReply   = 8
	typeSetConfig     = 9
	typePacketIn      = 10
	typeFlowRemoved   = 11
	typePortStatus    = 12
	typePacketOut     = 13
	typeFlowMod       = 14
)

// Message types of OpenFlow 1.3 and later. Those of 1.0 are in types10.
const (
	typeGroupMod         = 15
	typePortMod          = 16
	typeTableMod         = 17
	typeMultipart        = 18
	typeMultipartReply   = 19
	typeBarrier          = 20
	typeBarrierReply     = 21
	typeQueueConfig      = 22
	typeQueueConfigReply = 23
	typeRole             = 24
	typeRoleReply        = 25
	typeGetAsync         = 26
	typeAsyncReply       = 27
	typeSetAsync         = 28
	typeMeterMod         = 29
	typeBundleControl    = 33
	typeBundleAdd        = 34
)

// types10 maps the types of OpenFlow 1.0 that have another number in 1.3.
var types10 = map[uint8]uint8{
	15: typePortMod, 16: typeMultipart, 17: typeMultipartReply,
	18: typeBarrier, 19: typeBarrierReply, 20: typeQueueConfig, 21: typeQueueConfigReply,
}

// wireType is the number in a version of a type of 1.3.
func wireType(v Version, kind uint8) uint8 {
	if v == V10 {
		for ten, thirteen := range types10 {
			if thirteen == kind {
				return ten
			}
		}
	}
	return kind
}

// decoders read the bodies of requests, by their type in OpenFlow 1.3.
var decoders map[uint8]func(*reader, Version) (Body, error)

func init() { // not an initializer, because messages of bundles hold messages
	decoders = map[uint8]func(*reader, Version) (Body, error){
		typeEchoRequest:   func(r *reader, _ Version) (Body, error) { return &EchoRequest{r.rest()}, nil },
		typeEchoReply:     func(r *reader, _ Version) (Body, error) { return &EchoReply{r.rest()}, nil },
		typeError:         decodeError,
		typeExperimenter:  decodeExperimenter,
		typeFeatures:      empty(&FeaturesRequest{}),
		typeGetConfig:     empty(&GetConfig{}),
		typeSetConfig:     decodeSetConfig,
		typePacketOut:     decodePacketOut,
		typeFlowMod:       decodeFlowMod,
		typeGroupMod:      decodeGroupMod,
		typePortMod:       decodePortMod,
		typeMultipart:     decodeMultipart,
		typeBarrier:       empty(&BarrierRequest{}),
		typeQueueConfig:   decodeQueueConfig,
		typeRole:          decodeRole,
		typeGetAsync:      empty(&GetAsync{}),
		typeSetAsync:      decodeSetAsync,
		typeMeterMod:      decodeMeterMod,
		typeBundleControl: decodeBundleControl,
		typeBundleAdd:     decodeBundleAdd,
	}
}

// empty is the decoder of a message without a body.
func empty(b Body) func(*reader, Version) (Body, error) {
	return func(r *reader, _ Version) (Body, error) {
		if len(r.b) != 0 {
			return nil, fail(BadLength, "%d bytes follow a message that has no body", len(r.b))
		}
		return b, nil
	}
}

// firstWith is the first version that has a type.
var firstWith = map[uint8]Version{
	typeGroupMod: V13, typeRole: V13, typeGetAsync: V13, typeSetAsync: V13, typeMeterMod: V13, typeBundleControl: V14, typeBundleAdd: V14,
}

func decodeBody(r *reader, v Version, kind uint8) (Body, error) {
	if v == V10 {
		if thirteen, ok := types10[kind]; ok {
			kind = thirteen
		} else if kind > typeFlowMod {
			return nil, fail(BadType, "OpenFlow 1.0 has no message of type %d", kind)
		}
	}
	decode := decoders[kind]
	if decode == nil || v < firstWith[kind] || kind == typeQueueConfig && v > V13 {
		return nil, fail(BadType, "message type %d of %s is not supported", kind, v)
	}
	return decode(r, v)
}

// kindOf is a body's type as OpenFlow 1.3 numbers it.
func kindOf(b Body) uint8 {
	switch b := b.(type) {
	case *Hello:
		return typeHello
	case *ErrorReply:
		return typeError
	case *EchoRequest:
		return typeEchoRequest
	case *EchoReply:
		return typeEchoReply
	case *Features:
		return typeFeaturesReply
	case *Config:
		return typeConfigReply
	case *FlowMod:
		return typeFlowMod
	case *PacketIn:
		return b.kind()
	case *FlowRemoved:
		return b.kind()
	case *PortStatus:
		return typePortStatus
	case *AsyncReply:
		return typeAsyncReply
	case *BarrierReply:
		return typeBarrierReply
	case *QueueConfigReply:
		return typeQueueConfigReply
	case *Role:
		return typeRoleReply
	case *BundleControl:
		return typeBundleControl
	case *Reply:
		return typeMultipartReply
	}
	return typeExperimenter
}

// Encode is the bytes of one message. The error is for a body that the version does not have, and
// for a message that is too large.
func Encode(m Message) ([]byte, error) {
	body, ok := m.Body.(encoder)
	if !ok {
		return nil, fail(BadType, "%T is not a message that a switch sends", m.Body)
	}
	w := &writer{b: make([]byte, headerSize, 256)}
	kind := kindOf(m.Body)
	if kind == typeBundleControl && m.Version == V13 {
		kind = typeExperimenter
	}
	if s, ok := m.Body.(*FlowMonitorState); ok {
		kind = s.kind(m.Version)
	}
	w.b[0], w.b[1] = byte(m.Version), wireType(m.Version, kind)
	binary.BigEndian.PutUint32(w.b[4:], m.XID)
	if err := body.encode(w, m.Version); err != nil {
		return nil, err
	}
	if w.len() > maxMessage {
		return nil, fail(BadLength, "a message of %d bytes is too large", w.len())
	}
	w.set16(2, w.len())
	return w.b, nil
}
