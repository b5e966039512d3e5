package pcap

import (
	"encoding/binary"
	"fmt"
	"io"
	"time"
)

// The format of libpcap (pcap-savefile(5)): a header of 24 bytes, and a header of 16 bytes before
// each packet. The magic number gives the byte order and the unit of time.

const (
	magicMicroseconds = 0xa1b2c3d4
	magicNanoseconds  = 0xa1b23c4d
	fileHeaderLen     = 24
	packetHeaderLen   = 16
)

// linkEthernet is LINKTYPE_ETHERNET.
const linkEthernet = 1

// savefile reads the format of libpcap.
type savefile struct {
	from  io.Reader
	order binary.ByteOrder
	unit  time.Duration // of the second word of a time
}

// openSavefile reads the file header.
func openSavefile(from io.Reader) (*savefile, error) {
	var h [fileHeaderLen]byte
	if _, err := io.ReadFull(from, h[:]); err != nil {
		return nil, err
	}
	c := &savefile{from: from}
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		switch order.Uint32(h[:]) {
		case magicMicroseconds:
			c.order, c.unit = order, time.Microsecond
		case magicNanoseconds:
			c.order, c.unit = order, time.Nanosecond
		}
	}
	if c.order == nil {
		return nil, fmt.Errorf("it begins with %x: want a file of pcap or pcapng", h[:4])
	}
	return c, checkLink(c.order.Uint32(h[20:]) & 0xffff) // the upper bits tell of the frame check sequence
}

// next implements source.
func (c *savefile) next() (Packet, error) {
	var h [packetHeaderLen]byte
	if _, err := io.ReadFull(c.from, h[:]); err != nil {
		return Packet{}, err // io.EOF between two packets
	}
	at := time.Unix(int64(c.order.Uint32(h[:])), int64(c.order.Uint32(h[4:]))*int64(c.unit)).UTC()
	b, err := readPacket(c.from, c.order.Uint32(h[8:]))
	return Packet{Time: at, Bytes: b, Length: int(c.order.Uint32(h[12:]))}, err
}

// readPacket reads the captured bytes of a packet.
func readPacket(from io.Reader, n uint32) ([]byte, error) {
	if n > snapLength {
		return nil, fmt.Errorf("%d bytes were captured of it: at most %d can be read", n, snapLength)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(from, b)
	return b, midway(err)
}

// checkLink returns an error for a link type other than Ethernet.
func checkLink(kind uint32) error {
	if kind != linkEthernet {
		return fmt.Errorf("link type %d: only Ethernet (%d) can be read", kind, linkEthernet)
	}
	return nil
}

// appendFileHeader appends the header of a file with nanoseconds.
func appendFileHeader(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, magicNanoseconds)
	b = binary.LittleEndian.AppendUint16(b, 2)
	b = binary.LittleEndian.AppendUint16(b, 4)
	for _, word := range []uint32{0, 0, snapLength, linkEthernet} {
		b = binary.LittleEndian.AppendUint32(b, word)
	}
	return b
}

// appendPacketHeader appends the header of a packet that was captured whole.
func appendPacketHeader(b []byte, at time.Time, n int) []byte {
	for _, word := range []uint32{uint32(at.Unix()), uint32(at.Nanosecond()), uint32(n), uint32(n)} {
		b = binary.LittleEndian.AppendUint32(b, word)
	}
	return b
}
