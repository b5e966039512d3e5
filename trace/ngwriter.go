package trace

import (
	"encoding/binary"
	"io"
	"time"
)

// Blocks of pcapng (draft-ietf-opsawg-pcapng), each written immediately: a section header, a
// description of each interface, and packets. All are little-endian.

const (
	ngSection   = 0x0a0d0d0a
	ngInterface = 1
	ngPacket    = 6 // enhanced packet block

	ngOrder    = 0x1a2b3c4d
	ngEthernet = 1 // LINKTYPE_ETHERNET

	optionComment  = 1
	optionName     = 2 // if_name
	optionAbout    = 3 // if_description
	optionTimeUnit = 9 // if_tsresol
	optionProgram  = 4 // shb_userappl
	optionFlags    = 2 // epb_flags
	optionPacketID = 5 // epb_packetid
)

// direction is a packet's direction (epb_flags).
type direction uint32

const (
	unknownWay direction = iota
	inbound
	outbound
)

// ngWriter writes blocks.
type ngWriter struct {
	to  io.Writer
	buf []byte
}

// begin begins a block of a type.
func (w *ngWriter) begin(kind uint32) {
	w.buf = binary.LittleEndian.AppendUint32(w.buf[:0], kind)
	w.word(0) // placeholder for the length
}

func (w *ngWriter) word(v uint32) { w.buf = binary.LittleEndian.AppendUint32(w.buf, v) }

// bytes appends bytes, up to a multiple of 4.
func (w *ngWriter) bytes(b []byte) {
	w.buf = append(w.buf, b...)
	for len(w.buf)%4 != 0 {
		w.buf = append(w.buf, 0)
	}
}

// option appends an option of at most 65535 bytes.
func (w *ngWriter) option(kind uint16, value []byte) {
	w.buf = binary.LittleEndian.AppendUint16(w.buf, kind)
	w.buf = binary.LittleEndian.AppendUint16(w.buf, uint16(len(value)))
	w.bytes(value)
}

// end closes the options and the block, and writes the block.
func (w *ngWriter) end() error {
	w.word(0) // opt_endofopt
	length := uint32(len(w.buf) + 4)
	binary.LittleEndian.PutUint32(w.buf[4:], length)
	w.word(length)
	_, err := w.to.Write(w.buf)
	return err
}

// section writes the header of a section of unknown length.
func (w *ngWriter) section(program string) error {
	w.begin(ngSection)
	for _, word := range []uint32{ngOrder, 1, 0xffffffff, 0xffffffff} { // version 1.0
		w.word(word)
	}
	w.option(optionProgram, []byte(program))
	return w.end()
}

// addInterface describes the next interface, whose times are in nanoseconds.
func (w *ngWriter) addInterface(name, about string) error {
	w.begin(ngInterface)
	w.word(ngEthernet)
	w.word(0) // packets may have any length
	w.option(optionName, []byte(name))
	w.option(optionAbout, []byte(about))
	w.option(optionTimeUnit, []byte{9})
	return w.end()
}

// ngCaptured is a packet at an interface.
type ngCaptured struct {
	place    int // the interface
	way      direction
	at       time.Time
	frame    []byte // the captured bytes
	length   int    // on the wire
	id       *uint64
	comments []string
}

// packet writes a packet.
func (w *ngWriter) packet(p *ngCaptured) error {
	w.begin(ngPacket)
	stamp := uint64(p.at.UnixNano())
	for _, word := range []uint32{uint32(p.place), uint32(stamp >> 32), uint32(stamp), uint32(len(p.frame)), uint32(p.length)} {
		w.word(word)
	}
	w.bytes(p.frame)
	for _, s := range p.comments {
		w.option(optionComment, []byte(s))
	}
	w.option(optionFlags, binary.LittleEndian.AppendUint32(nil, uint32(p.way)))
	if p.id != nil {
		w.option(optionPacketID, binary.LittleEndian.AppendUint64(nil, *p.id))
	}
	return w.end()
}
