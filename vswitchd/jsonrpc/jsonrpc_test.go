package jsonrpc

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

// TestReader cuts a stream into messages, and says what is wrong with it.
func TestReader(t *testing.T) {
	r := NewReader(strings.NewReader(`{"method":"a","params":[1],"id":7}{"result":[],"error":null,"id":"x"} {"method":"n","params":[],"id":null}`), 100)
	for i, want := range []struct{ method, id string }{{"a", "7"}, {"", "x"}, {"n", "<nil>"}} {
		m, err := r.Next()
		if err != nil || m.Method != want.method || m.IsRequest() != (i == 0) {
			t.Errorf("message %d: %+v, %v", i, m, err)
		}
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	for text, want := range map[string]string{
		`[]`: "object", `{"id":1}`: "a result or an error", `{"method":"a","id":1}`: "both", `{"method":1,"params":[],"id":1}`: "wrong member",
		`{"method":"a","params":[],"id":1,"more":1}`: "wrong member", `{"result":1,"error":null}`: "has an id", `garbage`: "invalid character",
		`{"method":"a","params":[` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `],"id":1}`: "deeper",
		`{"method":"` + strings.Repeat("a", 300) + `","params":[],"id":1}`:                           "too long",
		`{"method":"a`: "unexpected EOF",
	} {
		if _, err := NewReader(strings.NewReader(text), 200).Next(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %s", text, err, want)
		}
	}
}

// FuzzReader: whatever a peer sends, messages come out that are written and read again as they
// are, or an error.
func FuzzReader(f *testing.F) {
	for _, s := range []string{`{"method":"a","params":[1,"\u0000"],"id":7}`, `{"result":{"a":[]},"error":null,"id":"x"}`, `{"id":{},"method":"x","params":[[[]]]}`, `{"a":"\\\"["}`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(bytes.NewReader(b), 1<<16)
		for {
			m, err := r.Next()
			if err != nil {
				return
			}
			again := Reply(m.ID, m.Result)
			if m.Method != "" {
				again = map[string]any{"method": m.Method, "params": m.Params, "id": m.ID}
			} else {
				again["error"] = m.Error
			}
			text, err := Encode(again)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := Parse(text); err != nil || !reflect.DeepEqual(m, n) {
				t.Errorf("%s: %+v, want %+v, %v", text, n, m, err)
			}
		}
	})
}

// TestOutbox keeps messages in order up to its bound, takes one of any length if it is empty,
// and lets a reader wait until it has space.
func TestOutbox(t *testing.T) {
	o := NewOutbox(20)
	if !o.Put(strings.Repeat("x", 100)) || o.Put("y") {
		t.Fatal("an empty outbox takes one message of any length, and no second one then")
	}
	r, w := io.Pipe()
	done := make(chan error)
	go func() { done <- o.Run(w) }()
	b := make([]byte, 102)
	if _, err := io.ReadFull(r, b); err != nil || b[0] != '"' || b[1] != 'x' {
		t.Fatalf("%q, %v", b, err)
	}
	if !o.WaitForSpace() || !o.Put("a") || !o.Put("b") {
		t.Error("the outbox is empty, and takes nothing")
	}
	if _, err := io.ReadFull(r, b[:6]); err != nil || string(b[:6]) != `"a""b"` {
		t.Errorf("%q, %v", b[:6], err)
	}
	o.Close()
	if err := <-done; err != nil || o.Put("c") || o.WaitForSpace() {
		t.Errorf("after Close: %v", err)
	}
}
