package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// between is the time from an answer to the next question.
const between = 10 * time.Millisecond

// hold asks over one connection until its input ends.
func hold(address string) error {
	var connections int
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if connections++; connections > 1 {
			return nil, errors.New("the connection was lost")
		}
		return (&net.Dialer{Timeout: patience}).DialContext(ctx, network, address)
	}
	client := http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DialContext: dial}}
	ended := make(chan struct{})
	go runUntilEnd(os.Stdin, ended)
	var longest time.Duration
	for n := 0; ; n++ {
		select {
		case <-ended:
			fmt.Printf("%d answers, the longest after %d ms\n", n, longest.Milliseconds())
			return nil
		case <-time.After(between):
		}
		asked := time.Now()
		if err := discard(client.Get("http://" + address + "/")); err != nil {
			return fmt.Errorf("after %d answers: %w", n, err)
		}
		longest = max(longest, time.Since(asked))
	}
}

// discard reads an answer whole, so that its connection can be used again.
func discard(answer *http.Response, err error) error {
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

func runUntilEnd(r io.Reader, ended chan<- struct{}) {
	io.Copy(io.Discard, r)
	close(ended)
}
