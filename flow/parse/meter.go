package parse

import (
	"strings"

	"github.com/antrail/antrail/flow"
)

// maxMeter is the largest meter number (OpenFlow 1.3, OFPM_MAX).
const maxMeter uint32 = 0xffff0000

// Meter reads one meter as dump-meters prints it (bands on lines of their own) or
// add-meter accepts it. The error is a *flow.Error with line and column.
func Meter(text string) (*flow.Meter, error) {
	var r meterReader
	for i, line := range strings.Split(text, "\n") {
		if err := r.read(span{line, 0}, i+1); err != nil {
			return nil, located(err, "", i+1)
		}
	}
	if len(r.meters) != 1 {
		return nil, &flow.Error{Line: 1, Column: 1, Msg: "expected one meter, beginning with meter=ID"}
	}
	if err := r.meters[0].check(); err != nil {
		return nil, located(err, "", r.meters[0].line)
	}
	return r.meters[0].meter, nil
}

// meterReader reads meters line by line. meter=… begins one; type=drop adds a
// band to it, on the same line or on the next.
type meterReader struct {
	meters []*meterText
	line   int
}

// meterText is a meter and its place in the text.
type meterText struct {
	meter   *flow.Meter
	at      span
	line    int
	hasUnit bool // kbps or pktps is given
}

// read reads one line.
func (r *meterReader) read(s span, line int) error {
	r.line = line
	if err := checkLength(s); err != nil {
		return err
	}
	return each(s, r.item)
}

func (r *meterReader) item(it item) error {
	if it.key.text == "meter" {
		return r.readMeterID(it)
	}
	if len(r.meters) == 0 {
		return it.key.errorf("expected meter=ID before %q", it.key.text)
	}
	m := r.meters[len(r.meters)-1]
	switch it.key.text {
	case "kbps", "pktps":
		m.hasUnit, m.meter.PktPS = true, it.key.text == "pktps"
		return it.bare()
	case "burst":
		m.meter.Burst = true
		return it.bare()
	case "stats":
		m.meter.Stats = true
		return it.bare()
	case "bands", "band":
		// The first part of a band may directly follow the equal sign.
		return each(it.value, m.bandPart)
	}
	return m.bandPart(it)
}

func (r *meterReader) readMeterID(it item) error {
	id, err := number(it.value, maxMeter)
	if err != nil {
		return err
	}
	if id == 0 {
		return it.value.errorf("meters begin with 1")
	}
	r.meters = append(r.meters, &meterText{meter: &flow.Meter{ID: id}, at: it.key, line: r.line})
	return nil
}

// bandPart reads type=drop, which begins a band, or a setting of the last one.
func (m *meterText) bandPart(it item) error {
	if it.key.text == "type" {
		if it.value.text != "drop" {
			return it.value.errorf("band type %q is not supported by this switch; expected drop", it.value.text)
		}
		m.meter.Bands = append(m.meter.Bands, flow.Band{})
		return nil
	}
	if len(m.meter.Bands) == 0 {
		return it.key.errorf("unknown meter property %q; expected kbps, pktps, burst, stats or bands", it.key.text)
	}
	b := &m.meter.Bands[len(m.meter.Bands)-1]
	n, err := number[uint32](it.value, 1<<32-1)
	switch it.key.text {
	case "rate":
		b.Rate = n
	case "burst_size":
		b.BurstSize = n
	default:
		return it.key.errorf("unknown band property %q; expected type, rate or burst_size", it.key.text)
	}
	return err
}

// check refuses an incomplete meter. Rate 0 would pass nothing, and Open vSwitch
// refuses it and an empty burst.
func (m *meterText) check() error {
	id := m.meter.ID
	switch {
	case !m.hasUnit:
		return m.at.errorf("meter %d needs kbps or pktps", id)
	case len(m.meter.Bands) == 0:
		return m.at.errorf("meter %d needs a band, as in bands=type=drop rate=100", id)
	}
	for _, b := range m.meter.Bands {
		switch {
		case b.Rate == 0:
			return m.at.errorf("a band of meter %d needs a rate", id)
		case m.meter.Burst && b.BurstSize == 0:
			return m.at.errorf("meter %d has burst, so its bands need burst_size", id)
		}
	}
	return nil
}
