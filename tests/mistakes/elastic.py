"""Mistakes in ``elastic.py``."""

from mistakes.round import mistake, together

DECORATOR = "@hvd.elastic.run\n"
TRAIN = "    train(state, model, optimizer, data, arguments, place)\n"
COMMIT = "        state.commit()\n"
STATE = "state = hvd.elastic.TensorFlowKerasState(model, optimizer, epoch=0)"
OBJECTS = "state = hvd.elastic.ObjectState(hvd.broadcast_object, hvd.rank, epoch=0)"
RATE = "optimizer.learning_rate.assign(arguments.learning_rate * hvd.size())"
SHARE = "rank, size = hvd.rank(), hvd.size()"
EPOCH = "        state.epoch += 1\n"
KEEP_ODD = "        done, state.epoch = state.epoch, state.epoch - 1 + state.epoch % 2\n"
SCALED = "tf.keras.optimizers.SGD(arguments.learning_rate * hvd.size(),"
DIES = "    try:\n    " + TRAIN + "    except Exception as error:\n        print(error)\n"

ROUNDS = (
    together(
        mistake(
            1,
            "the error is swallowed",
            (DECORATOR, ""),
            (TRAIN, DIES),
            said=("goes on after rank 0 was killed", "The other worker ended, too"),
        ),
        only=True,
    ),
    together(
        mistake(
            1,
            "train as it is",
            (DECORATOR, ""),
            said=("goes on after rank 0 was killed", "hvd.elastic.run"),
        ),
        only=True,
    ),
    together(
        mistake(
            1,
            "the other worker ends without an error",
            (DECORATOR, ""),
            (TRAIN, DIES.replace("print(error)", "raise SystemExit(0) from error")),
            said=("goes on after rank 0 was killed", "The other worker ended, too"),
        ),
        only=True,
    ),
    together(
        mistake(2, "never", (COMMIT, ""), said="went on with epoch 1"),
        mistake(
            4,
            "2 for the size",
            (RATE, RATE.replace("hvd.size()", "2")),
            said=("with 1 worker the learning rate is 1 x", "which is 2 x 0.03"),
        ),
        mistake(
            5,
            "the number at the start",
            (SHARE, "rank, size = hvd.rank(), place[1]"),
            said="images",
        ),
        only=True,
    ),
    together(
        mistake(
            2,
            "before the epoch is counted",
            (COMMIT, ""),
            (EPOCH, COMMIT + EPOCH),
            said="had ended when rank 0 was killed",
        ),
        mistake(
            4,
            "the local size",
            (RATE, RATE.replace("hvd.size", "hvd.local_size")),
            said=("with 2 workers the learning rate is 2 x", "which is 1 x 0.03", "epoch 1, rank"),
        ),
        mistake(
            5,
            "all images everywhere",
            (SHARE, "rank, size = 0, 1"),
            said="different images",
        ),
        only=True,
    ),
    together(
        mistake(
            2,
            "every fourth epoch",
            (COMMIT, "        if state.epoch % 4 == 0:\n    " + COMMIT),
            said="had ended when rank 0 was killed",
        ),
        mistake(
            4,
            "no scaling",
            (RATE, RATE.replace(" * hvd.size()", "")),
            said=("with 2 workers the learning rate is 2 x", "which is 1 x 0.03"),
        ),
        mistake(
            5,
            "half of the images, always",
            (SHARE, "rank, size = hvd.rank() % 2, 2"),
            said="1 worker",
        ),
        only=True,
    ),
    together(
        mistake(
            2,
            "in odd epochs alone",
            (COMMIT, "        if state.epoch % 2:\n    " + COMMIT),
            said="kept no new state between the ends of epochs 2 and 3",
        ),
        mistake(
            3,
            "a copy of the model",
            (STATE, STATE.replace("(model", "(tf.keras.models.clone_model(model)")),
            said="rank 1: its weights are",
        ),
        mistake(
            1,
            "it ends too early",
            ("state.epoch < arguments.epochs:", "state.epoch < arguments.epochs - 4:"),
            said=("ends by itself after 24 epochs", " to 20: 2 workers"),
        ),
        mistake(
            5,
            "the local rank",
            (SHARE, SHARE.replace("hvd.rank", "hvd.local_rank")),
            said=("different images", "epoch 1, 2 workers"),
        ),
        only=True,
    ),
    together(
        mistake(
            2,
            "on rank 0 alone",
            (
                COMMIT,
                "        if hvd.rank() == 0:\n            state.save()\n"
                "        state.check_host_updates()\n",
            ),
            said="went on with epoch 1",
        ),
        mistake(
            3,
            "the first weights, for ever",
            (STATE, OBJECTS.replace("=0)", "=0, weights=model.get_weights())")),
            said="rank 1: its weights are",
        ),
        mistake(
            4,
            "scaled once, at the start",
            (RATE, "pass"),
            ("tf.keras.optimizers.SGD(arguments.learning_rate,", SCALED),
            said=("with 1 worker the learning rate is 1 x", "which is 2 x 0.03"),
        ),
        only=True,
    ),
    together(
        mistake(
            2,
            "an even epoch is kept as the one before it",
            (COMMIT, KEEP_ODD + COMMIT + "        state.epoch = done\n"),
            said="kept no new state between the ends of epochs",
        ),
        # Comes with the next one: a worker that joins has not scaled its rate before.
        mistake(
            3,
            "each worker has a rate of its own",
            said=("the workers' learning rates are", "step 4 is about that"),
        ),
        mistake(
            4,
            "scaled again each time",
            (RATE, "optimizer.learning_rate.assign(optimizer.learning_rate * hvd.size())"),
            said=("with 1 worker the learning rate is 1 x", "which is 2 x 0.03"),
        ),
        mistake(
            5,
            "every worker has its own order",
            ("seed=0, epoch=epoch", "seed=rank, epoch=epoch"),
            said="different images",
        ),
    ),
    together(
        mistake(
            3,
            "another optimizer than the one that trains",
            (STATE, STATE.replace("optimizer,", "tf.keras.optimizers.SGD(momentum=0.9),")),
            said="rank 1: its weights are",
        ),
        only=True,
    ),
    together(
        mistake(
            1,
            "called in the line above the function",
            (DECORATOR, DECORATOR.replace("run", "run()")),
            said="run() missing 1 required positional argument: 'func'",
        ),
        only=True,
    ),
    together(
        mistake(
            3,
            "the model alone",
            (STATE, STATE.replace("model, optimizer", "model")),
            said="'NoneType' object has no attribute 'variables'",
        ),
        crashes=True,
        only=True,
    ),
    together(
        mistake(
            1,
            "an error of its own after the kill",
            (SHARE, "rank, size = place[0], hvd.size()"),
            said=("After the kill the other worker's script failed", "there is no rank 1"),
        ),
        only=True,
    ),
    together(
        mistake(3, "the epoch alone", (STATE, OBJECTS), said="rank 1: its weights are"),
        only=True,
    ),
)
