package pcap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"time"
)

// The format pcapng (draft-ietf-opsawg-pcapng): blocks, each with its type and its length at
// both ends. A section has its own byte order and its own interfaces. Blocks of other types
// than those below are skipped.

const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockSimple    = 3
	blockPacket    = 6 // enhanced packet block

	// sectionMagic shows the byte order of a section.
	sectionMagic = 0x1a2b3c4d
	// longestBlock limits a block that is read whole: a packet, its header and its options.
	longestBlock = snapLength + 1<<20

	optionEnd      = 0
	optionTimeUnit = 9  // if_tsresol
	optionTimeZero = 14 // if_tsoffset
)

// ngInterface is an interface of a section.
type ngInterface struct {
	link   uint32
	snap   uint32 // 0: no limit
	unit   byte   // as if_tsresol: 10^-n s, or 2^-n s with the highest bit
	offset int64  // seconds
}

// ngReader reads pcapng.
type ngReader struct {
	from       io.Reader
	order      binary.ByteOrder
	interfaces []ngInterface
}

// openNG reads up to the first interface, which must be Ethernet.
func openNG(from io.Reader) (*ngReader, error) {
	n := &ngReader{from: from, order: binary.LittleEndian} // the type of a section header is the same in both
	for len(n.interfaces) == 0 {
		kind, body, err := n.block()
		if err != nil {
			return nil, midway(err)
		}
		if kind == blockPacket || kind == blockSimple {
			return nil, errors.New("a packet comes before the first interface")
		}
		if err := n.describe(kind, body); err != nil {
			return nil, err
		}
	}
	return n, checkLink(n.interfaces[0].link)
}

// next implements source.
func (n *ngReader) next() (Packet, error) {
	for {
		kind, body, err := n.block()
		if err != nil {
			return Packet{}, err
		}
		switch kind {
		case blockPacket:
			return n.packet(body)
		case blockSimple:
			return n.simple(body)
		}
		if err := n.describe(kind, body); err != nil {
			return Packet{}, err
		}
	}
}

// block reads the next relevant block, without its type and lengths. The error is io.EOF between
// two blocks.
func (n *ngReader) block() (kind uint32, body []byte, err error) {
	for {
		var h [8]byte
		if _, err := io.ReadFull(n.from, h[:]); err != nil {
			return 0, nil, err
		}
		if kind = n.order.Uint32(h[:]); kind == blockSection {
			body, err = n.section(h[4:])
			return kind, body, midway(err)
		}
		length, err := bodyLen(n.order.Uint32(h[4:]))
		if err != nil {
			return 0, nil, err
		}
		if kind == blockInterface || kind == blockSimple || kind == blockPacket {
			body, err = n.body(length)
			return kind, body, midway(err)
		}
		if _, err := io.CopyN(io.Discard, n.from, int64(length)+4); err != nil {
			return 0, nil, midway(err)
		}
	}
}

// bodyLen is the length of a block less its type and both lengths.
func bodyLen(total uint32) (uint32, error) {
	if total < 12 || total%4 != 0 {
		return 0, fmt.Errorf("a block of %d bytes: want at least 12, and a multiple of 4", total)
	}
	return total - 12, nil
}

// section begins a section. The byte order is after the length.
func (n *ngReader) section(length []byte) (body []byte, err error) {
	var magic [4]byte
	if _, err := io.ReadFull(n.from, magic[:]); err != nil {
		return nil, err
	}
	switch {
	case binary.LittleEndian.Uint32(magic[:]) == sectionMagic:
		n.order = binary.LittleEndian
	case binary.BigEndian.Uint32(magic[:]) == sectionMagic:
		n.order = binary.BigEndian
	default:
		return nil, fmt.Errorf("the byte order of a section is %x: want %x, or that backwards", magic, sectionMagic)
	}
	n.interfaces = nil
	left, err := bodyLen(n.order.Uint32(length))
	if err == nil && left < 4 {
		err = fmt.Errorf("a section header of %d bytes: want at least 16", left+12)
	}
	if err != nil {
		return nil, err
	}
	return n.body(left - 4)
}

// body reads the rest of a block, and the length after it.
func (n *ngReader) body(length uint32) ([]byte, error) {
	if length > longestBlock {
		return nil, fmt.Errorf("a block of %d bytes: at most %d can be read", length, longestBlock)
	}
	b := make([]byte, length+4)
	_, err := io.ReadFull(n.from, b)
	return b[:length], err
}

// describe records an interface that a block describes.
func (n *ngReader) describe(kind uint32, body []byte) error {
	if kind != blockInterface {
		return nil
	}
	if len(body) < 8 {
		return fmt.Errorf("an interface of %d bytes: want at least 8", len(body))
	}
	i := ngInterface{link: uint32(n.order.Uint16(body)), snap: n.order.Uint32(body[4:]), unit: 6}
	for kind, value := range n.options(body[8:]) {
		switch {
		case kind == optionTimeUnit && len(value) == 1:
			i.unit = value[0]
		case kind == optionTimeZero && len(value) == 8:
			i.offset = int64(n.order.Uint64(value))
		}
	}
	if exponent := i.unit &^ 0x80; exponent > 63 || i.unit == exponent && exponent > 19 {
		return fmt.Errorf("the unit of time of interface %d is %#x: want 10^-19 or 2^-63 s at least", len(n.interfaces), i.unit)
	}
	n.interfaces = append(n.interfaces, i)
	return nil
}

// options iterates over options, up to the first one that does not fit.
func (n *ngReader) options(b []byte) func(yield func(kind uint16, value []byte) bool) {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= 4 {
			kind, length := n.order.Uint16(b), int(n.order.Uint16(b[2:]))
			if b = b[4:]; kind == optionEnd || length > len(b) || !yield(kind, b[:length]) {
				return
			}
			b = b[min(len(b), (length+3)&^3):]
		}
	}
}

// packet reads an enhanced packet block.
func (n *ngReader) packet(body []byte) (Packet, error) {
	if len(body) < 20 {
		return Packet{}, fmt.Errorf("a block of %d bytes: want at least 20", len(body))
	}
	no := n.order.Uint32(body)
	if int64(no) >= int64(len(n.interfaces)) {
		return Packet{}, fmt.Errorf("it is of interface %d, and the section has %d", no, len(n.interfaces))
	}
	i := &n.interfaces[no]
	if err := checkLink(i.link); err != nil {
		return Packet{}, fmt.Errorf("interface %d: %w", no, err)
	}
	stamp := uint64(n.order.Uint32(body[4:]))<<32 | uint64(n.order.Uint32(body[8:]))
	b, err := captured(body[20:], n.order.Uint32(body[12:]))
	return Packet{Time: i.time(stamp), Bytes: b, Length: int(n.order.Uint32(body[16:]))}, err
}

// simple reads a simple packet block. It belongs to the first interface and has no time.
func (n *ngReader) simple(body []byte) (Packet, error) {
	if len(body) < 4 || len(n.interfaces) == 0 {
		return Packet{}, fmt.Errorf("a simple packet block of %d bytes in a section with %d interfaces: want at least 4, and 1", len(body), len(n.interfaces))
	}
	i := &n.interfaces[0]
	if err := checkLink(i.link); err != nil {
		return Packet{}, fmt.Errorf("interface 0: %w", err)
	}
	length := n.order.Uint32(body)
	taken := length
	if i.snap != 0 {
		taken = min(length, i.snap)
	}
	b, err := captured(body[4:], taken)
	return Packet{Bytes: b, Length: int(length)}, err
}

// captured is the captured bytes of a packet at the beginning of a block's rest.
func captured(rest []byte, n uint32) ([]byte, error) {
	if int64(n) > int64(len(rest)) {
		return nil, fmt.Errorf("%d bytes were captured of it, and the block holds %d", n, len(rest))
	}
	return rest[:n:n], nil
}

// time is when a packet was captured, to a nanosecond.
func (i *ngInterface) time(stamp uint64) time.Time {
	exponent := uint(i.unit &^ 0x80)
	if i.unit&0x80 != 0 {
		high, low := bits.Mul64(stamp&(1<<exponent-1), uint64(time.Second))
		fraction := low>>exponent | high<<(64-exponent)
		return time.Unix(i.offset+int64(stamp>>exponent), int64(fraction)).UTC()
	}
	second := uint64(1)
	for range exponent {
		second *= 10
	}
	high, low := bits.Mul64(stamp%second, uint64(time.Second))
	fraction, _ := bits.Div64(high, low, second)
	return time.Unix(i.offset+int64(stamp/second), int64(fraction)).UTC()
}
