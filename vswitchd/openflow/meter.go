package openflow

import (
	"time"

	"github.com/antrail/antrail/flow"
)

// MeterCommand is what a MeterMod does.
type MeterCommand uint16

// The commands.
const (
	MeterAdd MeterCommand = iota
	MeterModify
	MeterDelete
)

// AllMeters is OFPM_ALL; maxMeterID is the largest number of a meter.
const (
	AllMeters  = 0xffffffff
	maxMeterID = 0xffff0000
)

// Flags of a meter.
const (
	meterKbps  = 1 << 0
	meterPktps = 1 << 1
	meterBurst = 1 << 2
	meterStats = 1 << 3
)

// bandDrop is the only type of band that this switch has; bandSize is a band's size.
const (
	bandDrop = 1
	bandSize = 16
)

// MeterMod is OFPT_METER_MOD.
type MeterMod struct {
	Command MeterCommand
	Meter   flow.Meter
}

func decodeMeterMod(r *reader, _ Version) (Body, error) {
	m := &MeterMod{Command: MeterCommand(r.u16())}
	flags := r.u16()
	m.Meter.ID = r.u32()
	if r.short {
		return nil, r.done()
	}
	m.Meter.PktPS, m.Meter.Burst, m.Meter.Stats = flags&meterPktps != 0, flags&meterBurst != 0, flags&meterStats != 0
	switch {
	case m.Command > MeterDelete:
		return nil, fail(MeterBadCommand, "command %d is unknown", m.Command)
	case m.Command == MeterDelete && (m.Meter.ID == AllMeters || m.Meter.ID-1 < maxMeterID):
		r.rest()
		return m, nil
	case m.Meter.ID == 0 || m.Meter.ID > maxMeterID:
		return nil, fail(InvalidMeter, "%#x is not the number of a meter", m.Meter.ID)
	case flags>>4 != 0 || flags&(meterKbps|meterPktps) == meterKbps|meterPktps || flags&(meterKbps|meterPktps) == 0:
		return nil, fail(MeterBadFlags, "a meter has flags %#x", flags)
	}
	return m, m.bands(r)
}

// bands reads the bands of a meter.
func (m *MeterMod) bands(r *reader) error {
	for len(r.b) > 0 {
		kind, n := r.u16(), int(r.u16())
		b := flow.Band{Rate: r.u32(), BurstSize: r.u32()}
		r.skip(4)
		switch {
		case n != bandSize || r.short:
			return fail(BadLength, "a band of %d bytes", n)
		case kind != bandDrop:
			return fail(MeterBadBand, "band type %d is not supported, want drop (%d)", kind, bandDrop)
		case b.Rate == 0, m.Meter.Burst && b.BurstSize == 0:
			return fail(MeterBadRate, "a band has rate %d and burst size %d", b.Rate, b.BurstSize)
		}
		m.Meter.Bands = append(m.Meter.Bands, b)
	}
	if len(m.Meter.Bands) == 0 {
		return fail(MeterBadBand, "meter %d has no band", m.Meter.ID)
	}
	return nil
}

// MeterConfig is a meter: a part of StatsMeterConfig.
type MeterConfig struct{ Meter *flow.Meter }

// part implements Part.
func (c *MeterConfig) part(w *writer, _ Version, _ bool) error {
	m := c.Meter
	flags := uint16(meterKbps)
	if m.PktPS {
		flags = meterPktps
	}
	if m.Burst {
		flags |= meterBurst
	}
	if m.Stats {
		flags |= meterStats
	}
	w.u16(uint16(8 + bandSize*len(m.Bands)))
	w.u16(flags)
	w.u32(m.ID)
	for _, b := range m.Bands {
		w.u16(bandDrop)
		w.u16(bandSize)
		w.u32(b.Rate)
		w.u32(b.BurstSize)
		w.u32(0)
	}
	return nil
}

// MeterStats are a meter's counters: a part of StatsMeter.
type MeterStats struct {
	ID             uint32
	Flows          uint32
	Packets, Bytes uint64
	Duration       time.Duration
	Dropped        []uint64 // packets, by band
}

// part implements Part.
func (s *MeterStats) part(w *writer, _ Version, _ bool) error {
	w.u32(s.ID)
	w.u16(uint16(40 + bandSize*len(s.Dropped)))
	w.zeros(6)
	w.u32(s.Flows)
	w.u64(s.Packets)
	w.u64(s.Bytes)
	w.duration(s.Duration)
	for _, n := range s.Dropped {
		w.u64(n)
		w.u64(0)
	}
	return nil
}

// MeterFeatures is the answer to StatsMeterFeatures.
type MeterFeatures struct{}

// part implements Part.
func (*MeterFeatures) part(w *writer, _ Version, _ bool) error {
	w.u32(maxMeterID)
	w.u32(1 << bandDrop)
	w.u32(meterKbps | meterPktps | meterBurst | meterStats)
	w.u8(8) // bands of a meter
	w.u8(0)
	w.u16(0)
	return nil
}
