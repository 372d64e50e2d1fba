"""The environment variables through which a launch tells a rank what to record and to do."""

# The folder of the run, where the rank leaves its records.
RUN_FOLDER_VARIABLE = "HVDCOURSE_RUN_FOLDER"
# What to record: communication ("horovod", "mpi4py"), "training", "ranks" to compare them, or what
# the challenge asks for ("challenge", "timed challenge").
OBSERVE_VARIABLE = "HVDCOURSE_OBSERVE"
# "EPOCH:IMAGES:FROM:TO": copy the rank's folder in FROM to TO when this epoch, counted from 0,
# begins, which is after at least so many training images of its own.
COPY_VARIABLE = "HVDCOURSE_COPY_FILES_AT"
# So many of the digits' test images are there.
TEST_IMAGES_VARIABLE = "HVDCOURSE_TEST_IMAGES"
# A rank of an observed challenge kills itself after this many training images of its own.
KILL_VARIABLE = "HVDCOURSE_KILL_AFTER_IMAGES"
